// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"cmp"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/kubernetes/pkg/features"
)

// Activate implements provisioner.Scheduler.
func (a *Adapter) Activate(pods []types.UID) {
	if len(pods) == 0 {
		return
	}
	wake := make(map[string]*v1.Pod, len(pods))
	var unknown map[types.UID]struct{}
	a.mu.Lock()
	for _, uid := range pods {
		if p, ok := a.waiting[uid]; ok {
			wake[string(uid)] = p
			continue
		}
		if unknown == nil {
			unknown = map[types.UID]struct{}{}
		}
		unknown[uid] = struct{}{}
	}
	a.mu.Unlock()
	if unknown != nil {
		// Our handler may be behind the scheduler's.
		q := a.sched.SchedulingQueue
		for _, p := range slices.Concat(q.UnschedulablePods(), q.PodsInBackoffQ(), q.InFlightPods()) {
			if _, ok := unknown[p.UID]; ok {
				wake[string(p.UID)] = p
			}
		}
	}
	a.sched.SchedulingQueue.Activate(a.logger, wake)
}

// Pending implements provisioner.Scheduler. Pods that wait for their victims on a real node are left out as well:
// their room is on its way.
func (a *Adapter) Pending() []*v1.Pod {
	q := a.sched.SchedulingQueue
	active, backoff, unschedulable := q.PodsInActiveQ(), q.PodsInBackoffQ(), q.UnschedulablePods()
	seen := make(map[types.UID]struct{}, len(active)+len(backoff)+len(unschedulable))
	var pending []*v1.Pod
	add := func(pods []*v1.Pod, maybeGated bool) {
		slices.SortStableFunc(pods, byPriority)
		for _, p := range pods {
			if _, ok := seen[p.UID]; ok || !a.plannable(p) || maybeGated && a.gated(p) {
				continue
			}
			seen[p.UID] = struct{}{}
			pending = append(pending, p)
		}
	}
	add(active, false)
	add(backoff, false)
	add(unschedulable, true)
	return pending
}

// byPriority is the default queue order: priority, then age.
func byPriority(x, y *v1.Pod) int {
	return cmp.Or(
		cmp.Compare(corev1helpers.PodPriority(y), corev1helpers.PodPriority(x)),
		x.CreationTimestamp.Compare(y.CreationTimestamp.Time),
		cmp.Compare(x.Namespace, y.Namespace),
		cmp.Compare(x.Name, y.Name),
	)
}

func (a *Adapter) plannable(p *v1.Pod) bool {
	if p.Spec.NodeName != "" || p.DeletionTimestamp != nil || a.profiles[p.Spec.SchedulerName] == nil {
		return false
	}
	if p.Spec.SchedulingGroup != nil && utilfeature.DefaultFeatureGate.Enabled(features.GenericWorkload) {
		return false
	}
	a.mu.Lock()
	_, parked := a.parked[p.UID]
	a.mu.Unlock()
	return !parked && !a.nominatedOnReal(p)
}

// nominatedOnReal says whether preemption has made, or is making, room for the pod on a node that exists.
func (a *Adapter) nominatedOnReal(p *v1.Pod) bool {
	name := p.Status.NominatedNodeName
	if name == "" || a.isPlanned(name) {
		return false
	}
	_, err := a.sched.Profiles[p.Spec.SchedulerName].SharedInformerFactory().Core().V1().Nodes().Lister().Get(name)
	return err == nil
}

// gated asks the profile's PreEnqueue plugins, as the queue does: it has no getter that is safe to use here.
func (a *Adapter) gated(p *v1.Pod) bool {
	for _, pl := range a.sched.Profiles[p.Spec.SchedulerName].PreEnqueuePlugins() {
		if !pl.PreEnqueue(a.ctx, p).IsSuccess() {
			return true
		}
	}
	return false
}
