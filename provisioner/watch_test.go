// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// A node that is being deleted and has no NodeClaim is drained and its machine ended: so nobody else's may come there.
func TestNodesOfOthersAreLeftAlone(t *testing.T) {
	t.Parallel()
	now := metav1.Now()
	cases := map[string]struct {
		synced, foreign, want bool
	}{
		"ours":                            {synced: true, want: true},
		"another's":                       {synced: true, foreign: true},
		"before it is known whose it is":  {},
		"another's, before that is known": {foreign: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, _ := newShell(t, nil)
			if p.synced = tc.synced; tc.foreign {
				p.foreign["aws:///a/i-n"] = "static"
			}
			p.nodeSeen(&v1.Node{
				ObjectMeta: metav1.ObjectMeta{
					Name: "n", Labels: map[string]string{karpv1.NodePoolLabelKey: "default"},
					Finalizers: []string{karpv1.TerminationFinalizer}, DeletionTimestamp: &now,
				},
				Spec: v1.NodeSpec{ProviderID: "aws:///a/i-n"},
			})
			if c, adopted := p.state.Claim("n"); adopted != tc.want {
				t.Errorf("taken up: %t (%+v), want %t", adopted, c, tc.want)
			}
		})
	}
}

func TestAMissedDeletionIsADeletion(t *testing.T) {
	t.Parallel()
	p, _ := newShell(t, nil)
	pod := testPod("a")
	p.waiting[pod.UID] = &waitingPod{reason: "NoPlace"}
	p.podGone(cache.DeletedFinalStateUnknown{Key: "default/a", Obj: pod})
	if len(p.waiting) > 0 {
		t.Errorf("still waiting: %v", p.waiting)
	}
}
