// SPDX-License-Identifier: Apache-2.0

package nodeprovisioning

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPinned(t *testing.T) {
	t.Parallel()
	byName := func(names ...string) v1.NodeSelectorTerm {
		return v1.NodeSelectorTerm{MatchFields: []v1.NodeSelectorRequirement{{Key: "metadata.name", Operator: v1.NodeSelectorOpIn, Values: names}}}
	}
	cases := map[string]struct {
		terms []v1.NodeSelectorTerm
		owner string
		want  string
	}{
		"free":            {},
		"by name":         {terms: []v1.NodeSelectorTerm{byName("a")}, want: "the pod's node affinity pins it to node a by metadata.name"},
		"of a DaemonSet":  {terms: []v1.NodeSelectorTerm{byName("a")}, owner: "DaemonSet", want: "the pod of DaemonSet owner is for node a only"},
		"of a ReplicaSet": {terms: []v1.NodeSelectorTerm{byName("a")}, owner: "ReplicaSet", want: "the pod's node affinity pins it to node a by metadata.name"},
		"any of two":      {terms: []v1.NodeSelectorTerm{byName("a"), byName("b")}, want: "the pod's node affinity pins it to node a, b by metadata.name"},
		"a free term":     {terms: []v1.NodeSelectorTerm{byName("a"), {}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := &v1.Pod{}
			if tc.owner != "" {
				yes := true
				pod.OwnerReferences = []metav1.OwnerReference{{Kind: tc.owner, Name: "owner", Controller: &yes}}
			}
			if tc.terms != nil {
				pod.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{
					RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{NodeSelectorTerms: tc.terms},
				}}
			}
			if got := pinned(pod); got != tc.want {
				t.Errorf("pinned = %q, want %q", got, tc.want)
			}
		})
	}
}
