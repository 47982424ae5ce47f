// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"encoding/json"
	"errors"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/jit-scheduler/jit-scheduler/provisioner/lifecycle"
)

func TestMergePatchIsTheDifference(t *testing.T) {
	t.Parallel()
	node := func(change func(*v1.Node)) *v1.Node {
		n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"a": "1"}}}
		change(n)
		return n
	}
	cases := map[string]struct {
		change func(*v1.Node)
		want   string
	}{
		"nothing":         {func(*v1.Node) {}, ""},
		"a label":         {func(n *v1.Node) { n.Labels["b"] = "2" }, `{"metadata":{"labels":{"b":"2"}}}`},
		"a label removed": {func(n *v1.Node) { delete(n.Labels, "a") }, `{"metadata":{"labels":null}}`},
		"a cordon":        {func(n *v1.Node) { n.Spec.Unschedulable = true }, `{"spec":{"unschedulable":true}}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := mergePatch(node(func(*v1.Node) {}), node(tc.change))
			if err != nil || string(got) != tc.want {
				t.Errorf("mergePatch = %s, %v; want %s", got, err, tc.want)
			}
		})
	}
}

// patchesOf carries an action out on a Node and returns the patch that was sent, nil if none was.
func patchesOf(t *testing.T, node *v1.Node, do func(*Provisioner) error) map[string]any {
	t.Helper()
	p, _ := newShell(t, nil)
	client := p.Client.(*fake.Clientset)
	if _, err := client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	var sent map[string]any
	client.PrependReactor("patch", "nodes", func(a clienttesting.Action) (bool, runtime.Object, error) {
		return false, nil, json.Unmarshal(a.(clienttesting.PatchAction).GetPatch(), &sent)
	})
	if err := do(p); err != nil {
		t.Fatal(err)
	}
	return sent
}

func TestANodeIsPatchedUnderTheVersionThatWasRead(t *testing.T) {
	t.Parallel()
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", ResourceVersion: "7"}}
	taint := func(p *Provisioner) error {
		return p.taintNode(t.Context(), lifecycle.TaintNode{Node: "n", Taint: true})
	}
	sent := patchesOf(t, node, taint)
	if meta, _ := sent["metadata"].(map[string]any); meta["resourceVersion"] != "7" {
		t.Errorf("sent %v, want resourceVersion 7", sent)
	}
	node.Spec.Taints = []v1.Taint{disrupted}
	if sent := patchesOf(t, node, taint); sent != nil {
		t.Errorf("sent %v for a node that has the taint", sent)
	}
}

func TestAHoldThatIsKeptStaysACordon(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		hold       string
		keep       bool
		wantClosed bool
		wantNoCall bool
	}{
		"over":                {hold: "123"},
		"a person wants it":   {hold: lifecycle.HoldKeep, wantClosed: true},
		"somebody drains":     {hold: "123", keep: true, wantClosed: true},
		"it is no more ours":  {wantNoCall: true, wantClosed: true},
		"nor ours, and keeps": {keep: true, wantNoCall: true, wantClosed: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Annotations: map[string]string{}}, Spec: v1.NodeSpec{
				Unschedulable: true, Taints: []v1.Taint{{Key: v1.TaintNodeUnschedulable, Effect: v1.TaintEffectNoSchedule}},
			}}
			if tc.hold != "" {
				node.Annotations[lifecycle.HoldAnnotation] = tc.hold
			}
			var now *v1.Node
			sent := patchesOf(t, node, func(p *Provisioner) error {
				if err := p.releaseHold(t.Context(), lifecycle.ReleaseHold{Node: "n", Keep: tc.keep}); err != nil {
					return err
				}
				var err error
				now, err = p.Client.CoreV1().Nodes().Get(t.Context(), "n", metav1.GetOptions{})
				return err
			})
			if (sent == nil) != tc.wantNoCall {
				t.Errorf("sent %v", sent)
			}
			if _, held := now.Annotations[lifecycle.HoldAnnotation]; held || now.Spec.Unschedulable != tc.wantClosed || len(now.Spec.Taints) > 0 != tc.wantClosed {
				t.Errorf("held: %t, unschedulable: %t, taints: %v; want closed: %t", held, now.Spec.Unschedulable, now.Spec.Taints, tc.wantClosed)
			}
		})
	}
}

func TestRegistrationOpensAndHoldsInOnePatch(t *testing.T) {
	t.Parallel()
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{
		Name: "c", UID: "c", Labels: map[string]string{"team": "a"}, Annotations: map[string]string{lifecycle.GroupAnnotation: "g", "note": "b"},
	}}
	claim.Spec.Taints = []v1.Taint{{Key: "gpu", Effect: v1.TaintEffectNoSchedule}}
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: v1.NodeSpec{Taints: []v1.Taint{unregistered}}}
	sent := patchesOf(t, node, func(p *Provisioner) error {
		return p.registerNode(t.Context(), lifecycle.RegisterNode{Node: "n", Claim: claim, Hold: true, HoldUntil: 99})
	})
	got, err := json.Marshal(sent)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"metadata":{"annotations":{"jit-scheduler.io/hold":"99","note":"b"},"finalizers":["karpenter.sh/termination"],` +
		`"labels":{"karpenter.sh/registered":"true","team":"a"},"ownerReferences":[{"apiVersion":"karpenter.sh/v1",` +
		`"blockOwnerDeletion":true,"kind":"NodeClaim","name":"c","uid":"c"}]},` +
		`"spec":{"taints":[{"effect":"NoSchedule","key":"gpu"}],"unschedulable":true}}`
	if string(got) != want {
		t.Errorf("sent\n%s\nwant\n%s", got, want)
	}
}

func TestNothingIsChangedWithoutTheLease(t *testing.T) {
	t.Parallel()
	notLeading := errors.New("not leading")
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	for name, action := range map[string]lifecycle.Action{
		"taint":        lifecycle.TaintNode{Node: "n", Taint: true},
		"initialize":   lifecycle.InitializeNode{Node: "n"},
		"delete node":  lifecycle.DeleteNode{Node: "n"},
		"delete claim": lifecycle.DeleteClaim{Name: "c"},
		"terminate":    lifecycle.Terminate{ProviderID: "aws:///a/i-c"},
		"tag":          lifecycle.TagInstance{ProviderID: "aws:///a/i-c", Claim: "c"},
		"create claim": lifecycle.CreateClaim{Object: &karpv1.NodeClaim{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sent := patchesOf(t, node.DeepCopy(), func(p *Provisioner) error {
				p.Leading = func() error { return notLeading }
				if _, err := p.effect(t.Context(), action); !errors.Is(err, notLeading) {
					t.Errorf("effect = %v, want %v", err, notLeading)
				}
				return nil
			})
			if sent != nil {
				t.Errorf("sent %v", sent)
			}
		})
	}
}
