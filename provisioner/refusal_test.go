// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/jit-scheduler/jit-scheduler/provisioner/lifecycle"
	"github.com/jit-scheduler/jit-scheduler/provisioner/plan"
)

func testPool(name string, change func(*karpv1.NodePool)) *poolState {
	p := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "default"}
	if change != nil {
		change(p)
	}
	return &poolState{pool: p}
}

// The planner sees ready pools only: a pool that would suit the pod and is not ready must be named, not the others
// that do not suit it.
func TestRefusalNamesThePoolThatIsNotReady(t *testing.T) {
	t.Parallel()
	tainted := func(p *karpv1.NodePool) {
		p.Spec.Template.Spec.Taints = []v1.Taint{{Key: "gpu", Effect: v1.TaintEffectNoSchedule}}
	}
	arm := func(p *karpv1.NodePool) {
		p.Spec.Template.Spec.Requirements = []karpv1.NodeSelectorRequirementWithMinValues{{Key: v1.LabelArchStable, Operator: v1.NodeSelectorOpIn, Values: []string{"arm64"}}}
	}
	amd64 := v1.PodSpec{NodeSelector: map[string]string{v1.LabelArchStable: "amd64"}}
	cases := map[string]struct {
		pool       *poolState
		pod        v1.PodSpec
		reason     string
		wantReason string
		wantIn     string
	}{
		"it suits":               {testPool("sick", nil), amd64, plan.ReasonIncompatible, reasonPoolNotReady, `EC2NodeClass "default" not found`},
		"chosen by name":         {testPool("sick", nil), v1.PodSpec{NodeSelector: map[string]string{karpv1.NodePoolLabelKey: "sick"}}, plan.ReasonNoPool, reasonPoolNotReady, "NodePool sick"},
		"another arch":           {testPool("sick", arm), amd64, plan.ReasonIncompatible, plan.ReasonIncompatible, "planner's"},
		"a taint":                {testPool("sick", tainted), amd64, plan.ReasonIncompatible, plan.ReasonIncompatible, "planner's"},
		"a limit is another say": {testPool("sick", nil), amd64, plan.ReasonLimit, plan.ReasonLimit, "planner's"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &Provisioner{pools: map[string]*poolState{"sick": tc.pool}, state: lifecycle.New(lifecycle.Config{})}
			got := p.blameNotReady(plan.Unplaced{Pods: []*v1.Pod{{Spec: tc.pod}}, Reason: tc.reason, Message: "the planner's sentence"})
			if got.Reason != tc.wantReason || !strings.Contains(got.Message, tc.wantIn) {
				t.Errorf("got %s: %s; want %s with %q", got.Reason, got.Message, tc.wantReason, tc.wantIn)
			}
		})
	}
}
