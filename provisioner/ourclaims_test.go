// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// poolOf is NodePool p as the API server has it.
func poolOf(replicas bool) *unstructured.Unstructured {
	u := karpenterObject(nodePools, "NodePool", "p", "pool")
	u.Object["spec"] = map[string]any{"template": map[string]any{"spec": map[string]any{
		"nodeClassRef": map[string]any{"group": nodeClasses.Group, "kind": "EC2NodeClass", "name": "c"},
	}}}
	if replicas {
		u.Object["spec"].(map[string]any)["replicas"] = int64(3)
	}
	return u
}

// A NodeClaim may be seen before its NodePool: until that is known to be dynamic, or not to exist, it is left alone.
func TestAClaimIsOursWhenItsPoolIs(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		// served is what the API server has; late is whether the informer tells of it only after the claim.
		served *unstructured.Unstructured
		first  bool
		kind   string
		label  string
		want   bool
		before bool
	}{
		"dynamic pool":                   {served: poolOf(false), first: true, want: true},
		"static pool":                    {served: poolOf(true), first: true},
		"dynamic pool, seen later":       {served: poolOf(false), want: true},
		"static pool, seen later":        {served: poolOf(true)},
		"its pool does not exist":        {want: true},
		"another provider's":             {served: poolOf(false), first: true, kind: "AKSNodeClass"},
		"made by hand, without any pool": {label: "-", want: true, before: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p, _ := newShell(t, nil)
				var served []runtime.Object
				if tc.served != nil {
					served = append(served, tc.served.DeepCopy())
				}
				p.Dynamic = newObjects(t, false, served...)
				claim := karpenterObject(nodeClaims, "NodeClaim", "n", "u")
				if tc.label == "" {
					claim.SetLabels(map[string]string{karpv1.NodePoolLabelKey: "p"})
				}
				kind := "EC2NodeClass"
				if tc.kind != "" {
					kind = tc.kind
				}
				claim.Object["spec"] = map[string]any{"nodeClassRef": map[string]any{"group": nodeClasses.Group, "kind": kind, "name": "c"}}
				claim.Object["status"] = map[string]any{"providerID": "aws:///a/i-n"}
				if tc.first {
					p.poolSeen(tc.served)
				}
				p.claimSeen(claim)
				ours := func() bool {
					p.mu.Lock()
					defer p.mu.Unlock()
					_, known := p.state.Claim("n")
					_, foreign := p.foreign["aws:///a/i-n"]
					if known == foreign {
						t.Errorf("known %t, foreign %t", known, foreign)
					}
					return known
				}
				if want := tc.first && tc.want || tc.before; ours() != want {
					t.Errorf("at first: ours %t, want %t", ours(), want)
				}
				time.Sleep(3 * time.Second)
				synctest.Wait()
				if tc.served != nil && !tc.first {
					if ours() {
						t.Error("taken before its pool is known")
					}
					p.poolSeen(tc.served)
				}
				if ours() != tc.want {
					t.Errorf("in the end: ours %t, want %t", ours(), tc.want)
				}
				if tc.served != nil && !tc.want { // the end of its pool does not make it ours
					p.poolGone(tc.served)
					p.claimSeen(claim)
					time.Sleep(3 * time.Second)
					if ours() {
						t.Error("ours once its pool is gone")
					}
				}
				p.claimGone(claim)
				time.Sleep(3 * time.Second)
			})
		})
	}
}
