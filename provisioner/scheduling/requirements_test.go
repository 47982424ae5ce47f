// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

func TestConflict(t *testing.T) {
	t.Parallel()
	pool := NewRequirements(NewRequirement("zone", in, "a", "b"), NewRequirement("team", notIn, "x"), NewRequirement("gone", absent))
	tests := map[string]struct {
		pod  Requirements
		want string
	}{
		"nothing asked":                      {Requirements{}, ""},
		"within":                             {NewRequirements(NewRequirement("zone", in, "b", "c")), ""},
		"outside":                            {NewRequirements(NewRequirement("zone", in, "c")), "zone"},
		"unknown key":                        {NewRequirements(NewRequirement("foo", exists)), "foo"},
		"unknown key that may be absent":     {NewRequirements(NewRequirement("foo", notIn, "x")), ""},
		"key that machines bring":            {NewRequirements(NewRequirement(v1.LabelArchStable, in, "arm64")), ""},
		"old name of it":                     {NewRequirements(NewRequirement("beta.kubernetes.io/arch", in, "arm64")), ""},
		"absent on both sides":               {NewRequirements(NewRequirement("gone", notIn, "x")), ""},
		"must be there and must not":         {NewRequirements(NewRequirement("gone", exists)), "gone"},
		"first of several, in order of keys": {NewRequirements(NewRequirement("zone", in, "c"), NewRequirement("foo", exists)), "foo"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := pool.Conflict(tc.pod, WellKnown); got != tc.want {
				t.Errorf("conflict on %q, want %q", got, tc.want)
			}
		})
	}
}

func TestFromPod(t *testing.T) {
	t.Parallel()
	pod := &v1.Pod{Spec: v1.PodSpec{NodeSelector: map[string]string{"failure-domain.beta.kubernetes.io/zone": "a"}}}
	if got := FromPod(pod); len(got) != 1 || !got[0].Matches(map[string]string{v1.LabelTopologyZone: "a"}) {
		t.Errorf("node selector: %v", got)
	}
	term := func(key string) v1.NodeSelectorTerm {
		return v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{{Key: key, Operator: exists}}}
	}
	pod.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution:  &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{term("x"), {}, term("y")}},
		PreferredDuringSchedulingIgnoredDuringExecution: []v1.PreferredSchedulingTerm{{Weight: 1, Preference: term("z")}},
	}}
	got := FromPod(pod)
	if len(got) != 2 {
		t.Fatalf("%d terms, want 2: an empty one matches nothing", len(got))
	}
	if got[0].Matches(map[string]string{"x": ""}) || !got[0].Matches(map[string]string{"x": "", v1.LabelTopologyZone: "a"}) {
		t.Errorf("the node selector is not part of the term: %v", got[0])
	}
	pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms = []v1.NodeSelectorTerm{{}}
	if got := FromPod(pod); got != nil {
		t.Errorf("only an empty term: %v, want none", got)
	}
}

func TestFromSpecs(t *testing.T) {
	t.Parallel()
	n1, n2 := 1, 2
	rs := FromSpecs([]karpv1.NodeSelectorRequirementWithMinValues{
		{Key: "b", Operator: in, Values: []string{"1", "2", "3"}, MinValues: &n1},
		{Key: "b", Operator: notIn, Values: []string{"3"}, MinValues: &n2},
		{Key: "a", Operator: gt, Values: []string{"5"}},
	})
	want := []karpv1.NodeSelectorRequirementWithMinValues{
		{Key: "a", Operator: gte, Values: []string{"6"}},
		{Key: "b", Operator: in, Values: []string{"1", "2"}, MinValues: &n2},
	}
	if diff := cmp.Diff(want, rs.Specs()); diff != "" {
		t.Errorf("specs (-want +got):\n%s", diff)
	}
}

func TestRestricted(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]bool{
		"kubernetes.io/hostname":              true,
		"karpenter.sh/custom":                 true,
		"x.karpenter.sh/foo":                  true,
		"karpenter.k8s.aws/unknown":           true,
		"karpenter.sh/capacity-type":          false,
		"karpenter.k8s.aws/instance-category": false,
		"node.kubernetes.io/role":             false,
		"x.node-restriction.kubernetes.io/y":  false,
		"kops.k8s.io/instancegroup":           false,
		"notkarpenter.sh/foo":                 false,
		"team":                                false,
	} {
		if got := Restricted(key); got != want {
			t.Errorf("%s restricted: %v, want %v", key, got, want)
		}
	}
}
