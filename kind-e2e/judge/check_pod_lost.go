// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// podLost: every pod of the watched scheduler is bound, or deleted by its owner,
// or carries a current reason at the end: PodScheduled=False with a message, or
// an event that is not older than Rules.ReasonMaxAge. A pod that pod GC deleted
// because its node does not exist was not deleted by its owner.
type podLost struct {
	in *input
}

func newPodLost(in *input) invariant { return &podLost{in: in} }

func (p *podLost) step(_ *world, c *change, report reporter) {
	if c.Pod == nil || c.Op != Deleted || !p.watched(c.Pod) {
		return
	}
	condition := podCondition(c.Pod, corev1.DisruptionTarget)
	if condition != nil && condition.Status == corev1.ConditionTrue && condition.Reason == "DeletionByPodGC" {
		report(c.Time, podName(c.Pod), "deleted by pod GC, its node %q is gone: %s", c.Pod.Spec.NodeName, condition.Message)
	}
}

func (p *podLost) finish(w *world, report reporter) {
	lastEvent := map[types.UID]time.Time{}
	for _, o := range w.events {
		uid := o.Event.InvolvedObject.UID
		if o.Time.After(lastEvent[uid]) {
			lastEvent[uid] = o.Time
		}
	}
	for _, pod := range w.pods {
		if !p.watched(pod) || pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil || terminal(pod) {
			continue
		}
		condition := podCondition(pod, corev1.PodScheduled)
		if condition != nil && condition.Status == corev1.ConditionFalse && condition.Message != "" {
			continue
		}
		if last, ok := lastEvent[pod.UID]; ok && p.in.end.Sub(last) <= p.in.rules.ReasonMaxAge {
			continue
		}
		report(p.in.end, podName(pod), "not bound, not deleted, and no current reason (nominated node %q)",
			pod.Status.NominatedNodeName)
	}
}

func (p *podLost) watched(pod *corev1.Pod) bool { return pod.Spec.SchedulerName == p.in.schedulerName }
