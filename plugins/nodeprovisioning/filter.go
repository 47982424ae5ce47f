// SPDX-License-Identifier: Apache-2.0

package nodeprovisioning

import (
	"context"

	v1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/jit-scheduler/jit-scheduler/provisioner"
)

// Reasons of Filter, as they are counted in FailedScheduling.
const (
	ReasonPlanned       = "node(s) were planned machines that are on their way"
	ReasonClosed        = "node(s) were about to be removed"
	ReasonHeld          = "node(s) were held for other pods"
	ReasonNotPaired     = "node(s) were not the one reserved for the pod"
	ReasonUnschedulable = "node(s) were unschedulable"
)

// Filter keeps pods off nodes that are not theirs. It enforces the pairing itself: nominated names and batching hints
// pass by PreFilterResult.
func (pl *Plugin) Filter(ctx context.Context, state fwk.CycleState, pod *v1.Pod, nodeInfo fwk.NodeInfo) *fwk.Status {
	c := pl.cycleOf(state, pod)
	return Admits(klog.FromContext(ctx), pod, nodeInfo.Node(), c.node, c.gates)
}

// Admits says whether the pod may go to the node at all, as far as planning, holds and cordons go. paired is the node
// that the pod is paired with ("": none).
func Admits(logger klog.Logger, pod *v1.Pod, node *v1.Node, paired string, gates map[string]provisioner.Gate) *fwk.Status {
	refuse := func(reason string) *fwk.Status { return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, reason) }
	if IsPlanned(node) {
		return refuse(ReasonPlanned)
	}
	if gates[node.Name] == provisioner.Closed {
		return refuse(ReasonClosed)
	}
	if paired != "" && node.Name != paired {
		return refuse(ReasonNotPaired)
	}
	if !node.Spec.Unschedulable {
		return nil
	}
	if IsHeld(node) {
		if node.Name == paired || gates[node.Name] == provisioner.Released {
			return nil
		}
		return refuse(ReasonHeld)
	}
	if !toleratesUnschedulable(logger, pod) {
		return refuse(ReasonUnschedulable)
	}
	return nil
}

// IsPlanned says whether the node exists in the scheduler's cache only.
func IsPlanned(node *v1.Node) bool { return node.Annotations[PlannedAnnotation] != "" }

// IsHeld says whether the node is cordoned by us, for the pods that are paired with it.
func IsHeld(node *v1.Node) bool {
	hold := node.Annotations[HoldAnnotation]
	return node.Spec.Unschedulable && hold != "" && hold != HoldKeep
}

// toleratesUnschedulable is the in-tree NodeUnschedulable's rule.
func toleratesUnschedulable(logger klog.Logger, pod *v1.Pod) bool {
	taint := &v1.Taint{Key: v1.TaintNodeUnschedulable, Effect: v1.TaintEffectNoSchedule}
	return corev1helpers.TolerationsTolerateTaint(logger, pod.Spec.Tolerations, taint, false)
}
