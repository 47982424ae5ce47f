// SPDX-License-Identifier: Apache-2.0

package simtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/fakeaws/catalogue"
)

// TestDistinctBurst: 1,000 NodeClaims that no two of which can share a launch, EC2 holding calls to its documented
// rates. No call is throttled, no NodeClaim is lost.
func TestDistinctBurst(t *testing.T) {
	const n = 1000
	var sections, script strings.Builder
	script.WriteString(`patch nodepool default {"spec":{"limits":{"cpu":"10000000"}}}
settings {"throttle":true,"joinDelay":"1h"}
advance 1s
`)
	types := slices.DeleteFunc(slices.Clone(catalogue.Types()), func(it catalogue.Type) bool {
		return it.Arch != "amd64" || !strings.ContainsAny(it.Name[:1], "cmr") || strings.ContainsAny(it.Name[1:2], "12") || it.VCPU < 2 || it.OnDemandUSD == 0 || it.Name[1] < '3' || it.Name[1] > '9'
	})
	i := 0
	for _, it := range types {
		for _, zone := range []string{"us-east-1a", "us-east-1b", "us-east-1c"} {
			if i == n {
				break
			}
			i++
			fmt.Fprintf(&sections, "-- s%d --\nspec: {nodeSelector: {node.kubernetes.io/instance-type: %s, topology.kubernetes.io/zone: %s}}\n", i, it.Name, zone)
			fmt.Fprintf(&script, "pods d%d 1 from=s%d cpu=500m\n", i, i)
		}
	}
	if i < n {
		t.Fatalf("the catalogue has %d places only", i)
	}
	fmt.Fprintf(&script, "within 1m claims %d\nremember\nwithin 5m instances %d\nexpect same-claims\nexpect launched %d\nexpect throttled 0\nexpect calls CreateFleet <=%d\n", n, n, n, n)
	synctest.Test(t, func(t *testing.T) { playScript(t, sections.String(), script.String(), nil) })
}
