// SPDX-License-Identifier: Apache-2.0

package judge

import (
	corev1 "k8s.io/api/core/v1"
)

// heldRoomStolen: no pod of another scheduler is bound to a node while the node
// is held (cordoned, with annotation jit-scheduler.io/hold), except DaemonSet
// pods and pods that tolerate node.kubernetes.io/unschedulable.
type heldRoomStolen struct {
	noFinish

	in *input
}

func newHeldRoomStolen(in *input) invariant { return &heldRoomStolen{in: in} }

func (h *heldRoomStolen) step(w *world, c *change, report reporter) {
	if !c.bound() || c.Pod.Spec.SchedulerName == h.in.schedulerName ||
		ofDaemonSet(c.Pod) || tolerates(c.Pod, corev1.TaintNodeUnschedulable) {
		return
	}
	node := w.nodes[c.Pod.Spec.NodeName]
	if node == nil || !held(node) {
		return
	}
	report(c.Time, podName(c.Pod), "of scheduler %s, bound to %s while that is held (resourceVersion %d)",
		c.Pod.Spec.SchedulerName, node.Name, c.revision)
}

// held reports whether the node's room is kept for pods that wait for it.
func held(node *corev1.Node) bool {
	_, annotated := node.Annotations[annotationHold]
	return annotated && node.Spec.Unschedulable
}
