// SPDX-License-Identifier: Apache-2.0

package witness

import (
	"errors"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/fakeaws"
)

// notInMoto are actions of the fake that moto does not have or answers with an internal error: nobody else has looked at
// them.
var notInMoto = []string{
	"arc-zonal-shift/GetManagedResource", "ec2/DescribeCapacityReservations", "ec2/DescribePlacementGroups", "pricing/GetProducts", "sts/DecodeAuthorizationMessage",
}

func TestMoto(t *testing.T) {
	t.Parallel()
	moto, err := startMoto(t.Context())
	if errors.Is(err, errAbsent) && os.Getenv("JIT_MOTO") != "required" {
		t.Skipf("%v: nothing but the fake itself says how AWS answers", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(moto.stop)
	settings := fakeaws.DefaultSettings()
	settings.PendingDelay.Duration = time.Millisecond
	server := fakeaws.New(fakeaws.Options{Settings: &settings, ClusterName: clusterName, Roles: []string{roleName}})
	t.Cleanup(server.Close)

	ours, err := furnishFake(t.Context(), server)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := furnishMoto(t.Context(), aws.Config{
		Region: "us-east-1", BaseEndpoint: &moto.URL, HTTPClient: http.DefaultClient, Credentials: credentials.NewStaticCredentialsProvider("AKWITNESS", "secret", ""),
	})
	if err != nil {
		t.Fatal(err)
	}
	calls := slices.Concat(ec2Calls, serviceCalls)
	fields := 0
	for _, c := range calls {
		fields += compareCall(t, c, ours, theirs)
	}
	t.Logf("moto %s: %d calls compared, %d fields; not in moto: %s", moto.Version, len(calls), fields, strings.Join(notInMoto, ", "))
	assertAllCompared(t, server)
}

// compareCall makes one call in both worlds and returns how many fields were compared.
func compareCall(t *testing.T, c call, ours, theirs *world) int {
	t.Helper()
	fake, fakeErr := c.do(t.Context(), ours)
	moto, motoErr := c.do(t.Context(), theirs)
	differences, n := Compare(fake, moto, fakeErr, motoErr)
	used := map[string]bool{}
	for _, d := range differences {
		if pattern := excepted(c, d.Path); pattern != "" {
			used[pattern] = true
			continue
		}
		t.Errorf("%s: %s", c.name, d)
	}
	for _, pattern := range slices.Sorted(maps.Keys(c.except)) {
		if !used[pattern] {
			t.Errorf("%s: nothing differs in %s any more: the exception can go", c.name, pattern)
		}
	}
	t.Logf("%-40s %3d fields, %d differ on purpose", c.name, n, len(used))
	for _, pattern := range slices.Sorted(maps.Keys(used)) {
		t.Logf("%40s %s: %s", "", pattern, c.except[pattern])
	}
	return n
}

func excepted(c call, path string) string {
	for pattern := range c.except {
		if regexp.MustCompile("^" + pattern + "$").MatchString(path) {
			return pattern
		}
	}
	return ""
}

// assertAllCompared fails if the fake serves an action that is neither compared nor known not to be in moto.
func assertAllCompared(t *testing.T, server *fakeaws.Server) {
	t.Helper()
	seen := map[string]bool{}
	for _, call := range server.Calls() {
		seen[call.Service+"/"+call.Action] = true
	}
	for _, action := range fakeaws.Actions() {
		if known := slices.Contains(notInMoto, action); seen[action] == known {
			t.Errorf("%s: compared is %t, not in moto is %t", action, seen[action], known)
		}
	}
}
