// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider/ec2"
)

// oneOrMany is a JSON string or a list of them.
type oneOrMany []string

func (o *oneOrMany) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*o = oneOrMany{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(o))
}

type policyStatement struct {
	Sid, Effect string
	Principal   map[string]string
	Action      oneOrMany
	Resource    oneOrMany
	Condition   map[string]map[string]oneOrMany
}

type policy struct {
	Version   string
	Statement []policyStatement
}

func readPolicy(t *testing.T, file string) policy {
	t.Helper()
	data, err := Files.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	var p policy
	if err := decoder.Decode(&p); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return p
}

// TestPolicyIsLeastPrivilege: no wildcard action; whatever changes something is bound by a tag or names its resource.
func TestPolicyIsLeastPrivilege(t *testing.T) {
	t.Parallel()
	// launchInputs are permissions to use a thing in a launch, which creates nothing by itself.
	const launchInputs = "LaunchFromWhatTheClassSelects"
	for _, s := range readPolicy(t, "iam/controller-policy.json").Statement {
		reads := true
		for _, action := range s.Action {
			if strings.Contains(action, "*") {
				t.Errorf("%s allows %s", s.Sid, action)
			}
			_, verb, _ := strings.Cut(action, ":")
			reads = reads && (strings.HasPrefix(verb, "Describe") || strings.HasPrefix(verb, "Get") || strings.HasPrefix(verb, "List") || strings.HasPrefix(verb, "Decode"))
		}
		for _, resource := range s.Resource {
			if resource == "*" && !reads {
				t.Errorf("%s changes *", s.Sid)
			}
		}
		if !reads && s.Sid != launchInputs && len(s.Condition) == 0 {
			t.Errorf("%s changes things without a condition", s.Sid)
		}
	}
}

// TestPolicyIsWhatTheAdapterCalls: nothing is missing, nothing is left over.
func TestPolicyIsWhatTheAdapterCalls(t *testing.T) {
	t.Parallel()
	granted := map[string]bool{}
	for _, s := range readPolicy(t, "iam/controller-policy.json").Statement {
		for _, action := range s.Action {
			granted[action] = true
		}
	}
	needed := map[string]bool{}
	for _, permission := range ec2.Permissions {
		needed[permission.Action] = true
	}
	if diff := cmp.Diff(needed, granted); diff != "" {
		t.Errorf("granted (-needed +granted):\n%s", diff)
	}
}

// TestPoliciesAreExplained: JSON has no comments, so every statement has its reason in the README beside it.
func TestPoliciesAreExplained(t *testing.T) {
	t.Parallel()
	readme, err := Files.ReadFile("iam/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range readPolicy(t, "iam/controller-policy.json").Statement {
		if !bytes.Contains(readme, []byte("`"+s.Sid+"`")) {
			t.Errorf("iam/README.md does not say why %s is needed", s.Sid)
		}
	}
	files, err := fs.Glob(Files, "iam/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		readPolicy(t, file)
		if !bytes.Contains(readme, []byte("`"+strings.TrimPrefix(file, "iam/")+"`")) {
			t.Errorf("iam/README.md does not name %s", file)
		}
	}
}
