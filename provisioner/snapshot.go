// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"cmp"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jit-scheduler/jit-scheduler/provisioner/lifecycle"
	"github.com/jit-scheduler/jit-scheduler/provisioner/plan"
)

const (
	// firstTypes is Karpenter's: a launch asks for at most 60 instance types.
	firstTypes = 60
	// maxTypes is how many a NodeClaim lists: when the first ones have no capacity, its launch goes on with the next.
	maxTypes = 3 * firstTypes
)

// snapshot is the world as the planner sees it; mu is held.
func (p *Provisioner) snapshot(pod *v1.Pod, schedulerName string) plan.Snapshot {
	s := plan.Snapshot{MaxTypes: maxTypes, FirstTypes: firstTypes, Classes: plan.Classes(p.pending(pod, schedulerName))}
	daemons := p.daemons()
	for _, name := range p.poolNames() {
		st := p.pools[name]
		if !ours(st.pool) || p.notReady(st) != "" {
			continue
		}
		class := p.classes[st.pool.Spec.Template.Spec.NodeClassRef.Name]
		types, err := p.instanceTypes(class.resolved)
		if err != nil {
			continue
		}
		types, absent := p.typesOf(st.pool, types)
		s.Pools = append(s.Pools, plan.Pool{
			NodePool: st.pool, Types: types, Absent: absent, InUse: p.state.Usage(name), Daemons: daemons,
		})
	}
	for _, o := range p.state.Open() {
		s.Open = append(s.Open, plan.OpenNode{Name: o.Name, Pool: o.Pool, Free: o.Free})
	}
	return s
}

// placeReserved shows the Fitter the pods that have a place on a claim and are not in the scheduler's cache yet: they
// are still in the queue, or still to be created. Spread and affinity must count them. mu is held.
func (p *Provisioner) placeReserved(open []plan.OpenNode, fitter plan.Fitter) {
	for _, o := range open {
		for _, r := range p.state.Reserved(o.Name) {
			if pod := p.notParked(r); pod != nil {
				fitter.Place(o.Name, pod)
			}
		}
	}
}

func (p *Provisioner) notParked(r lifecycle.Pod) *v1.Pod {
	if pod := p.standIns[r.UID]; pod != nil {
		return pod
	}
	if p.sched.Parked(r.UID) != nil {
		return nil
	}
	return p.stored(r.Namespace, r.Name, r.UID)
}

func (p *Provisioner) poolNames() []string { return slices.Sorted(maps.Keys(p.pools)) }

// pending are the pods to plan: the one that was asked about first, then the queue's in its order, then those that
// their owners are about to create; none that has a place or was refused since the last change. mu is held.
func (p *Provisioner) pending(first *v1.Pod, schedulerName string) []*v1.Pod {
	pods := []*v1.Pod{first}
	seen := map[types.UID]bool{first.UID: true}
	for _, pod := range p.sched.Pending() {
		if seen[pod.UID] || pod.Spec.SchedulerName != schedulerName || !p.plannable(pod) {
			continue
		}
		seen[pod.UID] = true
		pods = append(pods, pod)
	}
	return append(pods, p.expect(pods)...)
}

// plannable is false for pods that have a place, are gone, bound or being deleted, or were refused already.
func (p *Provisioner) plannable(pod *v1.Pod) bool {
	if claim, node := p.state.Reservation(pod.UID); claim != "" || node != "" {
		return false
	}
	if w := p.waiting[pod.UID]; w != nil && w.epoch == p.epoch && w.reason != "" && plan.Independent(pod) {
		return false // the others may be helped by the pods that are planned with them
	}
	now := p.stored(pod.Namespace, pod.Name, pod.UID)
	return unbound(now) && !p.preempting(now)
}

// unbound is false for pods that are gone, bound or being deleted.
func unbound(pod *v1.Pod) bool {
	return pod != nil && pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil
}

// stored is the pod as the informer has it, nil if it is gone.
func (p *Provisioner) stored(namespace, name string, uid types.UID) *v1.Pod {
	obj, ok, err := p.pods.GetStore().GetByKey(namespace + "/" + name)
	if err != nil || !ok {
		return nil
	}
	if now := obj.(*v1.Pod); now.UID == uid {
		return now
	}
	return nil
}

// preempting tells the nominations of preemption, which name a real node, from ours: a pod whose victims are ending
// must not buy.
func (p *Provisioner) preempting(pod *v1.Pod) bool {
	if pod.Status.NominatedNodeName == "" {
		return false
	}
	_, err := p.Informers.Core().V1().Nodes().Lister().Get(pod.Status.NominatedNodeName)
	return err == nil
}

// daemonsOn is what DaemonSet pods will take of each of the nodes; mu is held.
func (p *Provisioner) daemonsOn(nodes []*v1.Node) []v1.ResourceList {
	out := make([]v1.ResourceList, len(nodes))
	if len(nodes) == 0 {
		return out
	}
	fitter, err := p.sched.NewFitter(p.SchedulerNames[0])
	if err != nil {
		p.logger().Error(err, "No Filter oracle", "profile", p.SchedulerNames[0])
		return out
	}
	daemons := p.daemons()
	var candidates []plan.Candidate
	for _, n := range nodes {
		candidate := n.DeepCopy()
		candidate.Name += ".restored" // the planned node itself may be there
		candidates = append(candidates, plan.Candidate{Node: candidate, Daemons: daemons})
	}
	for i, pods := range fitter.Candidates(candidates) {
		out[i] = sum(pods)
	}
	return out
}

// daemons are the pods that DaemonSets would create on a new node; the Fitter says on which.
func (p *Provisioner) daemons() []*v1.Pod {
	sets, err := p.Informers.Apps().V1().DaemonSets().Lister().List(labels.Everything())
	if err != nil {
		return nil
	}
	var pods []*v1.Pod
	for _, ds := range sets {
		controller := true
		pods = append(pods, &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: ds.Namespace, Name: ds.Name, UID: "daemon-" + ds.UID,
				Labels: ds.Spec.Template.Labels, Annotations: ds.Spec.Template.Annotations,
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: ds.Name, UID: ds.UID, Controller: &controller}},
			},
			Spec: ds.Spec.Template.Spec,
		})
	}
	slices.SortFunc(pods, func(a, b *v1.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return pods
}
