// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"
)

// podHandler follows the unbound pods of our profiles. The scheduler's own handlers skip assumed pods, so updates of
// parked ones are ours; it handles their deletion and binding in the cache itself.
func (a *Adapter) podHandler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { a.podSeen(obj) },
		UpdateFunc: func(_, obj any) { a.podSeen(obj) },
		DeleteFunc: func(obj any) {
			if d, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = d.Obj
			}
			if pod, ok := obj.(*v1.Pod); ok {
				a.podGone(pod)
			}
		},
	}
}

func (a *Adapter) podSeen(obj any) {
	pod, ok := obj.(*v1.Pod)
	if !ok || !a.sched.Profiles.HandlesSchedulerName(pod.Spec.SchedulerName) {
		return
	}
	if pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil {
		a.podGone(pod)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waiting[pod.UID] = pod
	parked, ok := a.parked[pod.UID]
	if !ok || same(parked, pod) {
		return
	}
	// Its size or labels have changed (a resize of a waiting pod, a label): the planned node must count the new ones.
	a.forget(a.logger, parked)
	delete(a.parked, pod.UID)
	a.assumeLocked(a.logger, pod, parked.Spec.NodeName)
}

// podGone forgets a pod that is bound, deleted or about to be. The scheduler's own handler has taken it off its
// planned node, or will; forgetting it twice does nothing.
func (a *Adapter) podGone(pod *v1.Pod) {
	a.mu.Lock()
	delete(a.waiting, pod.UID)
	a.mu.Unlock()
	a.unpark(pod.UID)
}

// same says whether the parked object counts as the pod does.
func same(parked, pod *v1.Pod) bool {
	if !equality.Semantic.DeepEqual(parked.Labels, pod.Labels) {
		return false
	}
	spec := pod.Spec
	spec.NodeName = parked.Spec.NodeName
	return equality.Semantic.DeepEqual(parked.Spec, spec)
}

// likeness is equal for pods that selectors cannot tell apart.
func likeness(pod *v1.Pod) string { return pod.Namespace + "/" + labels.Set(pod.Labels).String() }
