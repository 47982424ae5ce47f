// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/jit-scheduler/jit-scheduler/plugins/nodeprovisioning"
)

// nextEntity replaces the scheduler's NextEntity, which is called while leading only. The first call rebuilds the
// ledger. Popped pods that the ledger has a place for are parked and never reach a cycle; pod groups pass.
func (a *Adapter) nextEntity(logger klog.Logger) (framework.QueuedEntityInfo, error) {
	a.lead.Do(func() { a.Lead(a.leading) })
	for {
		e, err := a.pop(logger)
		if err != nil {
			return e, err
		}
		if e == nil {
			// The queue is closed.
			a.endLeading()
			return nil, nil
		}
		p, ok := e.(*framework.QueuedPodInfo)
		if !ok || p.PodInfo == nil || p.Pod == nil {
			return e, nil
		}
		if !a.park(logger, p) {
			a.dropNomination(p)
			return e, nil
		}
	}
}

// dropNomination takes the name of a claim off a pod that has a cycle: it was written for people to see, and the
// scheduler would look for a node of that name.
func (a *Adapter) dropNomination(p *framework.QueuedPodInfo) {
	name := p.Pod.Status.NominatedNodeName
	if name == "" || a.nominatedOnReal(p.Pod) {
		return
	}
	pod := p.Pod.DeepCopy()
	pod.Status.NominatedNodeName = ""
	info, err := framework.NewPodInfo(pod)
	if err != nil {
		return
	}
	a.sched.SchedulingQueue.DeleteNominatedPodIfExists(p.Pod)
	p.PodInfo = info
}

// park assumes a popped pod on the planned node that the ledger names and takes it out of the queue's hands. It
// returns false if the pod is to have a cycle.
func (a *Adapter) park(logger klog.Logger, p *framework.QueuedPodInfo) bool {
	pod := p.Pod
	r := a.Reservation(pod)
	if r.NodeClaim == "" || pod.DeletionTimestamp != nil || pod.Spec.NodeName != "" {
		return false
	}
	switch a.assume(logger, pod, r.NodeClaim) {
	case assumed:
	case alreadyParked:
		// An update that crossed the parking put a second copy into the queue.
		a.sched.SchedulingQueue.Done(pod.UID)
		return true
	case notAssumed:
		return false
	}
	a.sched.SchedulingQueue.DeleteNominatedPodIfExists(pod)
	// The event loop may have taken the place away before it could see the pod parked.
	if a.Reservation(pod) != r {
		if a.unpark(pod.UID) != nil {
			return false
		}
	}
	a.sched.SchedulingQueue.Done(pod.UID)
	logger.V(4).Info("Parked pod", "pod", klog.KObj(pod), "nodeClaim", r.NodeClaim)
	if p.Attempts <= 1 {
		a.tell(logger, pod, r.NodeClaim)
	}
	return true
}

// tell publishes the one event of a pod that is reserved without having failed.
func (a *Adapter) tell(logger klog.Logger, pod *v1.Pod, claim string) {
	if f, ok := a.sched.Profiles[pod.Spec.SchedulerName]; ok {
		f.EventRecorder().WithLogger(logger).Eventf(pod, nil, v1.EventTypeNormal, nodeprovisioning.EventNominated, "Provisioning", "reserved on NodeClaim %s", claim)
	}
}

type assumption int

const (
	notAssumed assumption = iota
	assumed
	alreadyParked
)

// assume puts the latest version of the pod on the planned node in the cache and records it.
func (a *Adapter) assume(logger klog.Logger, pod *v1.Pod, node string) assumption {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, ok := a.parked[pod.UID]; ok {
		return alreadyParked
	}
	return a.assumeLocked(logger, pod, node)
}

func (a *Adapter) assumeLocked(logger klog.Logger, pod *v1.Pod, node string) assumption {
	latest := a.latest(pod)
	if latest == nil {
		return notAssumed
	}
	parked := latest.DeepCopy()
	parked.Spec.NodeName = node
	if err := a.cache.AssumePod(logger, parked); err != nil {
		logger.V(3).Info("Not parking a pod that the cache knows", "pod", klog.KObj(pod), "err", err)
		return notAssumed
	}
	// The informer's store is updated before its handlers run: a deletion that is not visible here will find the
	// pod assumed and clean up.
	if a.latest(pod) == nil {
		a.forget(logger, parked)
		return notAssumed
	}
	a.parked[pod.UID] = parked
	return assumed
}

// latest is the pod as the informer has it, nil if it is gone, terminating, bound, or another one.
func (a *Adapter) latest(pod *v1.Pod) *v1.Pod {
	p, err := a.pods.Pods(pod.Namespace).Get(pod.Name)
	if err != nil || p.UID != pod.UID || p.DeletionTimestamp != nil || p.Spec.NodeName != "" {
		return nil
	}
	return p
}

// forget takes an assumed pod out of the cache. That it is not there as assumed (deleted, bound) is no error.
func (a *Adapter) forget(logger klog.Logger, parked *v1.Pod) {
	if err := a.cache.ForgetPod(logger, parked); err != nil {
		logger.V(3).Info("Parked pod had left the cache", "pod", klog.KObj(parked), "err", err)
	}
}

// unpark undoes assume and returns the object that was parked, nil if it was not.
func (a *Adapter) unpark(uid types.UID) *v1.Pod {
	a.mu.Lock()
	defer a.mu.Unlock()
	parked, ok := a.parked[uid]
	if !ok {
		return nil
	}
	delete(a.parked, uid)
	a.forget(a.logger, parked)
	return parked
}

// Parked implements provisioner.Scheduler. Its spec.nodeName is the planned node's.
func (a *Adapter) Parked(uid types.UID) *v1.Pod {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.parked[uid]
}

// Unpark implements provisioner.Scheduler.
func (a *Adapter) Unpark(pods []types.UID) {
	ctx := klog.NewContext(a.ctx, a.logger)
	var others []types.UID
	freed := map[string]*v1.Pod{}
	for _, uid := range pods {
		parked := a.unpark(uid)
		if parked == nil {
			others = append(others, uid)
			continue
		}
		freed[likeness(parked)] = parked
		pod := a.latest(parked)
		if pod == nil {
			continue
		}
		if n := pod.Status.NominatedNodeName; n != "" && n == parked.Spec.NodeName {
			// Written for people to see; in the nominator the name would cost every cycle.
			pod = pod.DeepCopy()
			pod.Status.NominatedNodeName = ""
		}
		a.sched.SchedulingQueue.Add(ctx, pod)
	}
	a.freed(freed)
	a.Activate(others)
}

// Drop implements provisioner.Scheduler.
func (a *Adapter) Drop(uid types.UID) {
	if parked := a.unpark(uid); parked != nil {
		a.freed(map[string]*v1.Pod{likeness(parked): parked})
	}
}

// freed tells the queue that pods have left their planned node, as the scheduler does for a deleted assumed pod: what
// spread and affinity refused may pass now. One event per kind of pod is enough: nobody gets the room itself.
func (a *Adapter) freed(pods map[string]*v1.Pod) {
	for _, p := range pods {
		a.sched.SchedulingQueue.MoveAllToActiveOrBackoffQueue(a.logger, framework.EventAssignedPodDelete, p, nil, nil)
	}
}
