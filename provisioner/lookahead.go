// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jit-scheduler/jit-scheduler/provisioner/lifecycle"
)

// expectation is the set of pods that one ReplicaSet is about to create: their places are kept under made-up UIDs
// until they come, or until none has come for expectedFor.
type expectation struct {
	uids []types.UID
	last time.Time
}

const (
	expectedFor = 30 * time.Second
	// maxExpected bounds what one plan looks ahead per owner.
	maxExpected = 5000
)

// expect makes stand-ins for the pods that the owners of these pods still have to create; mu is held.
// A ReplicaSet creates its pods in batches of 1, 2, 4, …: without looking ahead each batch would buy its own machine.
func (p *Provisioner) expect(pods []*v1.Pod) []*v1.Pod {
	var out []*v1.Pod
	done := map[types.UID]bool{}
	for _, pod := range pods {
		ref := metav1.GetControllerOf(pod)
		if ref == nil || ref.Kind != "ReplicaSet" || done[ref.UID] || len(pod.Spec.SchedulingGates) > 0 {
			continue
		}
		done[ref.UID] = true
		for i := range p.missing(pod.Namespace, ref) {
			c := *pod // the spec is shared: it is the template's
			c.Name = fmt.Sprintf("%s-expected-%d", ref.Name, i)
			c.UID = types.UID(fmt.Sprintf(expectedPrefix+"%s/%d/%d", ref.UID, p.epoch, p.serial))
			p.serial++
			c.Status = v1.PodStatus{}
			out = append(out, &c)
		}
	}
	return out
}

// missing is how many pods a ReplicaSet has yet to create that no place is kept for.
func (p *Provisioner) missing(namespace string, ref *metav1.OwnerReference) int {
	rs, err := p.Informers.Apps().V1().ReplicaSets().Lister().ReplicaSets(namespace).Get(ref.Name)
	if err != nil || rs.UID != ref.UID || rs.DeletionTimestamp != nil || rs.Spec.Replicas == nil || cannotCreate(rs) {
		return 0
	}
	have := 0
	for _, pod := range p.podsOf(byOwner, string(ref.UID)) {
		if pod.DeletionTimestamp == nil && pod.Status.Phase != v1.PodSucceeded && pod.Status.Phase != v1.PodFailed {
			have++
		}
	}
	if e := p.expected[ref.UID]; e != nil {
		have += len(e.uids)
	}
	return max(0, min(int(*rs.Spec.Replicas)-have, maxExpected, p.quota(namespace)))
}

// cannotCreate is true while the ReplicaSet is being refused its pods (quota, admission).
func cannotCreate(rs *appsv1.ReplicaSet) bool {
	return slices.ContainsFunc(rs.Status.Conditions, func(c appsv1.ReplicaSetCondition) bool {
		return c.Type == appsv1.ReplicaSetReplicaFailure && c.Status == v1.ConditionTrue
	})
}

// keep remembers that places are kept for pods to come; mu is held.
func (p *Provisioner) keep(pods []*v1.Pod) {
	for _, pod := range pods {
		if !isExpected(pod) {
			continue
		}
		owner := controllerUID(pod)
		e := p.expected[owner]
		if e == nil {
			e = &expectation{}
			p.expected[owner] = e
		}
		e.uids = append(e.uids, pod.UID)
		p.standIns[pod.UID] = pod
		e.last = time.Now()
	}
}

const expectedPrefix = "expected/"

func isExpected(pod *v1.Pod) bool { return expectedUID(pod.UID) }

func expectedUID(uid types.UID) bool { return strings.HasPrefix(string(uid), expectedPrefix) }

// known leaves out the expected pods: the scheduler does not know them.
func known(uids []types.UID) []types.UID {
	return slices.DeleteFunc(slices.Clone(uids), expectedUID)
}

// unexpect forgets an expected pod that has lost its place, so that its owner's next plan keeps another; mu is held.
func (p *Provisioner) unexpect(uid types.UID) {
	pod := p.standIns[uid]
	if pod == nil {
		return
	}
	delete(p.standIns, uid)
	if e := p.expected[controllerUID(pod)]; e != nil {
		e.uids = slices.DeleteFunc(e.uids, func(u types.UID) bool { return u == uid })
	}
}

// claimExpected gives a new pod the place kept for one of its ReplicaSet's pods, on the claim or, since the handover,
// on its node; mu is held.
func (p *Provisioner) claimExpected(pod *v1.Pod) (claim, node string) {
	e := p.expected[controllerUID(pod)]
	for e != nil && len(e.uids) > 0 {
		uid := e.uids[0]
		e.uids = e.uids[1:]
		delete(p.standIns, uid)
		if claim, node := p.state.Reservation(uid); claim == "" && node == "" {
			continue // its claim failed meanwhile
		}
		e.last = time.Now()
		p.applyLocked(lifecycle.PodArrived{Expected: uid, Pod: ledgerPod(pod)})
		return p.state.Reservation(pod.UID)
	}
	return "", ""
}

// expire gives up the places of pods that do not come, and forgets why claims that are gone were given up.
func (p *Provisioner) expire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.failures, func(claim, _ string) bool {
		_, there := p.state.Claim(claim)
		return !there
	})
	for owner, e := range p.expected {
		if len(e.uids) > 0 && time.Since(e.last) < expectedFor {
			continue
		}
		for _, uid := range e.uids {
			delete(p.standIns, uid)
			p.applyLocked(lifecycle.PodGone{UID: uid})
		}
		delete(p.expected, owner)
	}
}

// quota is how many more pods the namespace's ResourceQuotas allow; none where one limits what pods take, as it is not
// guessed how much of it the next one would.
func (p *Provisioner) quota(namespace string) int {
	left := maxExpected
	quotas, err := p.Informers.Core().V1().ResourceQuotas().Lister().ResourceQuotas(namespace).List(labels.Everything())
	if err != nil {
		return left
	}
	for _, q := range quotas {
		for name, hard := range q.Status.Hard {
			switch {
			case name == v1.ResourcePods || name == "count/pods":
				used := q.Status.Used[name]
				left = min(left, max(0, int(hard.Value()-used.Value())))
			case !countsObjects(name):
				return 0
			}
		}
	}
	if left == maxExpected {
		return left
	}
	for _, pod := range p.standIns {
		if pod.Namespace == namespace {
			left--
		}
	}
	return max(0, left)
}

// objectQuotas are the quotas on the number of objects, other than pods.
var objectQuotas = []v1.ResourceName{
	v1.ResourceServices, v1.ResourceServicesNodePorts, v1.ResourceServicesLoadBalancers, v1.ResourceConfigMaps,
	v1.ResourceSecrets, v1.ResourceReplicationControllers, v1.ResourceQuotas,
}

func countsObjects(name v1.ResourceName) bool {
	return slices.Contains(objectQuotas, name) || strings.HasPrefix(string(name), "count/")
}
