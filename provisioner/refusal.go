// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	corehelpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/jit-scheduler/jit-scheduler/provisioner/plan"
	"github.com/jit-scheduler/jit-scheduler/provisioner/scheduling"
)

// reasonPoolNotReady: a NodePool could take the pod if it, or its EC2NodeClass, were ready.
const reasonPoolNotReady = "NodePoolNotReady"

// noPool says why no NodePool can open a NodeClaim at all; mu is held.
func (p *Provisioner) noPool() plan.Unplaced {
	var why []string
	for _, name := range p.poolNames() {
		if st := p.pools[name]; ours(st.pool) {
			why = append(why, fmt.Sprintf("NodePool %s is not ready: %s", name, p.notReady(st)))
		}
	}
	if len(why) == 0 {
		return plan.Unplaced{Reason: plan.ReasonNoPool, Message: "there is no NodePool of class EC2NodeClass; create one"}
	}
	return plan.Unplaced{Reason: reasonPoolNotReady, Message: cut(strings.Join(why, "; "))}
}

// cut keeps a sentence within the 250 characters that people read.
func cut(s string) string {
	if r := []rune(s); len(r) > 250 {
		return string(r[:249]) + "…"
	}
	return s
}

// blameNotReady names a NodePool that would suit the pods but is not ready, where the planner, which does not see such
// pools, could only say that no other one suits; mu is held.
func (p *Provisioner) blameNotReady(u plan.Unplaced) plan.Unplaced {
	if u.Reason != plan.ReasonNoPool && u.Reason != plan.ReasonIncompatible {
		return u
	}
	for _, name := range p.poolNames() {
		st := p.pools[name]
		if !ours(st.pool) || !suits(st.pool, u.Pods[0]) {
			continue
		}
		if why := p.notReady(st); why != "" {
			u.Reason, u.Message = reasonPoolNotReady, cut(fmt.Sprintf("NodePool %s is not ready: %s", name, why))
			return u
		}
	}
	return u
}

// suits says whether labels and taints of the pool's nodes could take the pod, whatever its size.
func suits(pool *karpv1.NodePool, pod *v1.Pod) bool {
	template := &pool.Spec.Template
	if _, untolerated := corehelpers.FindMatchingUntoleratedTaint(klog.Background(), template.Spec.Taints, pod.Spec.Tolerations, func(t *v1.Taint) bool {
		return t.Effect != v1.TaintEffectPreferNoSchedule
	}, false); untolerated {
		return false
	}
	have := scheduling.FromSpecs(template.Spec.Requirements).
		Intersect(scheduling.FromLabels(template.Labels)).
		Intersect(scheduling.FromLabels(map[string]string{karpv1.NodePoolLabelKey: pool.Name}))
	return slices.ContainsFunc(scheduling.FromPod(pod), func(want scheduling.Requirements) bool {
		return have.Conflict(want, scheduling.WellKnown) == ""
	})
}
