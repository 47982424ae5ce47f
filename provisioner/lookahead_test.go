// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
	"github.com/jit-scheduler/jit-scheduler/provisioner/lifecycle"
)

func testSet(replicas int32, change func(*appsv1.ReplicaSet)) *appsv1.ReplicaSet {
	rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "rs"}, Spec: appsv1.ReplicaSetSpec{Replicas: &replicas}}
	if change != nil {
		change(rs)
	}
	return rs
}

// podsFor are n pods of a ReplicaSet.
func podsFor(rs *appsv1.ReplicaSet, n int) []*v1.Pod {
	controller := true
	pods := make([]*v1.Pod, 0, n)
	for i := range n {
		pod := testPod(fmt.Sprintf("%s-%d", rs.Name, i))
		pod.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: rs.Name, UID: rs.UID, Controller: &controller}}
		pods = append(pods, pod)
	}
	return pods
}

func testQuota(hard, used map[v1.ResourceName]string) *v1.ResourceQuota {
	list := func(in map[v1.ResourceName]string) v1.ResourceList {
		out := v1.ResourceList{}
		for k, v := range in {
			out[k] = resource.MustParse(v)
		}
		return out
	}
	return &v1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "quota"},
		Status:     v1.ResourceQuotaStatus{Hard: list(hard), Used: list(used)},
	}
}

func TestExpectsWhatAReplicaSetHasYetToCreate(t *testing.T) {
	t.Parallel()
	type list = map[v1.ResourceName]string
	now := metav1.Now()
	cases := map[string]struct {
		replicas int32
		change   func(*appsv1.ReplicaSet)
		gone     int // of the two pods that are there
		quota    *v1.ResourceQuota
		gated    bool
		want     int
	}{
		"the rest":                 {replicas: 10, want: 8},
		"all are there":            {replicas: 2},
		"one is about to go":       {replicas: 10, gone: 1, want: 9},
		"scaled down":              {replicas: 1},
		"never too many":           {replicas: 100_000, want: maxExpected},
		"gated":                    {replicas: 10, gated: true},
		"being deleted":            {replicas: 10, change: func(rs *appsv1.ReplicaSet) { rs.DeletionTimestamp = &now }},
		"another of the same name": {replicas: 10, change: func(rs *appsv1.ReplicaSet) { rs.UID = "other" }},
		"it is refused its pods": {replicas: 10, change: func(rs *appsv1.ReplicaSet) {
			rs.Status.Conditions = []appsv1.ReplicaSetCondition{{Type: appsv1.ReplicaSetReplicaFailure, Status: v1.ConditionTrue}}
		}},
		"a quota on pods":            {replicas: 10, quota: testQuota(list{"pods": "5"}, list{"pods": "2"}), want: 3},
		"a quota on counted pods":    {replicas: 10, quota: testQuota(list{"count/pods": "5"}, list{"count/pods": "2"}), want: 3},
		"a quota that is used up":    {replicas: 10, quota: testQuota(list{"pods": "2"}, list{"pods": "3"})},
		"a quota on CPU":             {replicas: 10, quota: testQuota(list{"requests.cpu": "5"}, nil)},
		"a quota on pods and on CPU": {replicas: 10, quota: testQuota(list{"pods": "50", "requests.cpu": "5"}, nil)},
		"a quota on other objects":   {replicas: 10, quota: testQuota(list{"secrets": "1", "count/jobs.batch": "1"}, nil), want: 8},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, _ := newShell(t, nil)
			pods := podsFor(testSet(tc.replicas, nil), 2)
			for i, pod := range pods {
				if i < tc.gone {
					pod.DeletionTimestamp = &now
				}
				if tc.gated {
					pod.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "wait"}}
				}
				store(t, p.pods.GetStore().Add, pod)
			}
			store(t, p.Informers.Apps().V1().ReplicaSets().Informer().GetStore().Add, testSet(tc.replicas, tc.change))
			if tc.quota != nil {
				store(t, p.Informers.Core().V1().ResourceQuotas().Informer().GetStore().Add, tc.quota)
			}
			got := p.expect(pods)
			if len(got) != tc.want {
				t.Fatalf("expect = %d pods, want %d", len(got), tc.want)
			}
			uids := map[types.UID]bool{}
			for _, pod := range got {
				if uids[pod.UID] = true; !isExpected(pod) {
					t.Errorf("%s is no expected pod", pod.UID)
				}
			}
			if len(uids) != len(got) {
				t.Errorf("%d UIDs for %d pods", len(uids), len(got))
			}
			if p.keep(got); tc.want < maxExpected && len(p.expect(pods)) > 0 {
				t.Error("a place that is kept was planned again")
			}
		})
	}
}

// testClaim puts a claim for these pods into the ledger, created.
func testClaim(p *Provisioner, name string, pods ...*v1.Pod) *karpv1.NodeClaim {
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{karpv1.NodePoolLabelKey: "default"}, Annotations: map[string]string{},
		Finalizers: []string{karpv1.TerminationFinalizer},
	}}
	stamp(claim, "group-"+name, 0, 1)
	room := v1.ResourceList{v1.ResourceCPU: resource.MustParse("4"), v1.ResourcePods: resource.MustParse("10")}
	m := &cloudprovider.InstanceType{Name: "m", Capacity: room, Allocatable: room}
	p.apply(lifecycle.Planned{Groups: []lifecycle.Group{{ID: "group-" + name, Claims: []lifecycle.NewClaim{{
		Object:  claim,
		Node:    &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: v1.NodeStatus{Allocatable: room}},
		Options: []cloudprovider.LaunchOption{{InstanceType: m, Offering: cloudprovider.Offering{Zone: "a", CapacityType: "spot", Price: 1}}},
		Pods:    ledgerPods(pods),
	}}}}})
	claim = claim.DeepCopy()
	claim.UID = types.UID("uid-" + name)
	p.apply(lifecycle.ClaimSeen{Claim: claim})
	return claim
}

// handOver has the machine of a claim launched, registered with the hold, and ready.
func handOver(p *Provisioner, claim string) {
	p.apply(lifecycle.Launched{Group: "group-" + claim, Attempt: 1, Instances: []cloudprovider.Instance{{
		ProviderID: "aws:///a/i-" + claim, InstanceType: "m", Zone: "a", CapacityType: "spot", State: "running",
	}}})
	p.apply(lifecycle.NodeSeen{Node: &v1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        "node-" + claim,
			Labels:      map[string]string{karpv1.NodePoolLabelKey: "default", karpv1.NodeRegisteredLabelKey: "true"},
			Annotations: map[string]string{lifecycle.HoldAnnotation: "1"},
		},
		Spec: v1.NodeSpec{ProviderID: "aws:///a/i-" + claim, Unschedulable: true},
		Status: v1.NodeStatus{
			Conditions:  []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}},
			Allocatable: v1.ResourceList{v1.ResourceCPU: resource.MustParse("4"), v1.ResourcePods: resource.MustParse("10")},
		},
	}})
}

// expecting keeps places for two pods of a ReplicaSet on a claim and returns the two that come.
func expecting(t *testing.T) (*Provisioner, *queue, []*v1.Pod) {
	t.Helper()
	p, q := newShell(t, nil)
	rs := testSet(3, nil)
	pods := podsFor(rs, 3)
	store(t, p.pods.GetStore().Add, pods[0])
	store(t, p.Informers.Apps().V1().ReplicaSets().Informer().GetStore().Add, rs)
	expected := p.expect(pods[:1])
	p.keep(expected)
	testClaim(p, "c", append(pods[:1:1], expected...)...)
	return p, q, pods[1:]
}

// A ReplicaSet may create its pods more slowly than the machine comes: the places are on the node then.
func TestAPodThatComesLateTakesItsPlace(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		ready bool
		want  Reservation
	}{
		"the machine is on its way": {want: Reservation{NodeClaim: "c"}},
		"the machine is ready":      {ready: true, want: Reservation{Node: "node-c"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, q, pods := expecting(t)
			if tc.ready {
				handOver(p, "c")
			}
			for _, pod := range pods {
				if got := p.Reservation(pod); got != tc.want {
					t.Errorf("%s: Reservation = %+v, want %+v", pod.Name, got, tc.want)
				}
			}
			if got := p.Reservation(testPod("stranger")); got != (Reservation{}) {
				t.Errorf("Reservation of a stranger = %+v", got)
			}
			if len(p.standIns) > 0 {
				t.Errorf("still expected: %v", p.standIns)
			}
			if slices.ContainsFunc(q.activated, expectedUID) {
				t.Error("the scheduler was asked for a pod that does not exist")
			}
		})
	}
}

func TestAPlaceThatIsLostIsPlannedAgain(t *testing.T) {
	t.Parallel()
	p, _, pods := expecting(t)
	p.apply(lifecycle.ClaimGone{Name: "c"})
	if len(p.standIns) > 0 || len(p.expected["rs"].uids) > 0 {
		t.Errorf("still expected: %v, %v", p.standIns, p.expected["rs"].uids)
	}
	if got := p.Reservation(pods[0]); got != (Reservation{}) {
		t.Errorf("Reservation = %+v, want none", got)
	}
}

func TestPlacesExpire(t *testing.T) {
	t.Parallel()
	p, _, pods := expecting(t)
	p.expire()
	if len(p.standIns) != 2 {
		t.Fatalf("%d places after a moment, want 2", len(p.standIns))
	}
	p.expected["rs"].last = time.Now().Add(-2 * expectedFor)
	p.expire()
	if len(p.standIns) > 0 || len(p.expected) > 0 {
		t.Errorf("still expected: %v, %v", p.standIns, p.expected)
	}
	if got := p.Reservation(pods[0]); got != (Reservation{}) {
		t.Errorf("Reservation = %+v, want none", got)
	}
	if c, _ := p.state.Claim("c"); c.Waiting != 1 {
		t.Errorf("%d pods wait on the claim, want 1", c.Waiting)
	}
}
