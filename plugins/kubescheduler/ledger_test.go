// SPDX-License-Identifier: Apache-2.0

package kubescheduler_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jit-scheduler/jit-scheduler/plugins/nodeprovisioning"
	"github.com/jit-scheduler/jit-scheduler/provisioner"
	"github.com/jit-scheduler/jit-scheduler/provisioner/plan"
	"github.com/jit-scheduler/jit-scheduler/provisioner/simtest"
)

func TestMain(m *testing.M) { simtest.Main(m) }

// ledger is a small provisioner: one machine size, one zone, claims are opened as pods need them. Like the real one
// it calls the scheduler with its lock held.
type ledger struct {
	sched provisioner.Scheduler
	// limit is the number of claims that may be opened, zone the one of each.
	limit int

	mu         sync.Mutex
	led        int
	claims     []string
	entries    map[types.UID]provisioner.Reservation
	gates      map[string]provisioner.Gate
	preempting []string
	provisions int
	misfits    int
	reserved   map[types.UID]string
	// launch is what Decision.Launch does.
	launch func(context.Context) error
}

var _ nodeprovisioning.Provisioner = &ledger{}

func (l *ledger) Lead(context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.led++
}

func (l *ledger) Reservation(pod *v1.Pod) provisioner.Reservation {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.entries[pod.UID]
}

func (l *ledger) Gates() map[string]provisioner.Gate {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.gates
}

func (l *ledger) Provision(pod *v1.Pod, profile string, preempting bool) provisioner.Decision {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.provisions++
	if preempting {
		l.preempting = append(l.preempting, pod.Name)
		return provisioner.Decision{Outcome: provisioner.Refused, Reason: "Preempting", Message: "victims are terminating"}
	}
	if r := l.entries[pod.UID]; r.NodeClaim != "" {
		return provisioner.Decision{NodeClaim: r.NodeClaim, Message: "reserved on NodeClaim " + r.NodeClaim}
	}
	f, err := l.sched.NewFitter(profile)
	if err != nil {
		return provisioner.Decision{Outcome: provisioner.Refused, Reason: "Internal", Message: err.Error()}
	}
	for _, p := range append([]*v1.Pod{pod}, l.sched.Pending()...) {
		if l.entries[p.UID].NodeClaim == "" && f.Ready(&plan.Class{Pods: []*v1.Pod{p}}, 1) == 0 {
			l.put(f, p)
		}
	}
	r := l.entries[pod.UID]
	if r.NodeClaim == "" {
		return provisioner.Decision{Outcome: provisioner.Refused, Reason: "NoInstanceTypeFits", Message: "no instance type fits"}
	}
	return provisioner.Decision{NodeClaim: r.NodeClaim, Reason: "Nominated", Message: "reserved on NodeClaim " + r.NodeClaim, Launch: l.launch}
}

// put reserves the pod on an open claim or opens one.
func (l *ledger) put(f plan.Fitter, p *v1.Pod) {
	for i, v := range f.Fit(p, l.claims) {
		if v.Fits {
			f.Place(l.claims[i], p)
			l.entries[p.UID] = provisioner.Reservation{NodeClaim: l.claims[i]}
			return
		}
	}
	if len(l.claims) >= l.limit {
		return
	}
	f.Candidates([]plan.Candidate{{Node: machine("candidate")}})
	if v := f.Fit(p, []string{"candidate"}); !v[0].Fits {
		return
	}
	name := fmt.Sprintf("claim-%d", len(l.claims)+1)
	f.Open("candidate", name)
	f.Place(name, p)
	l.claims = append(l.claims, name)
	l.sched.AddPlannedNode(machine(name))
	l.entries[p.UID] = provisioner.Reservation{NodeClaim: name}
}

func (l *ledger) Reserved(pod *v1.Pod, node string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reserved[pod.UID] = node
	delete(l.entries, pod.UID)
}

func (l *ledger) Unreserved(pod *v1.Pod) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.reserved, pod.UID)
}

func (l *ledger) Misfit(pod *v1.Pod) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.misfits++
	delete(l.entries, pod.UID)
}

// handOver pairs the claim's pods with the node.
func (l *ledger) handOver(claim, node string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var pods []types.UID
	for uid, r := range l.entries {
		if r.NodeClaim == claim {
			l.entries[uid] = provisioner.Reservation{Node: node}
			pods = append(pods, uid)
		}
	}
	slices.Sort(pods)
	l.sched.Unpark(pods)
	l.sched.RemovePlannedNode(claim)
}

// withdraw gives up a claim: its pods are planned again.
func (l *ledger) withdraw(claim string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.claims = slices.DeleteFunc(l.claims, func(c string) bool { return c == claim })
	var pods []types.UID
	for uid, r := range l.entries {
		if r.NodeClaim == claim {
			pods = append(pods, uid)
		}
	}
	maps.DeleteFunc(l.entries, func(_ types.UID, r provisioner.Reservation) bool { return r.NodeClaim == claim })
	l.sched.Unpark(pods)
	l.sched.RemovePlannedNode(claim)
}

func (l *ledger) snapshot() (claims []string, provisions int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.claims), l.provisions
}

// start runs a scheduler with a ledger that may open limit claims.
func start(t *testing.T, limit int, o simtest.Options) (*simtest.Cluster, *ledger) {
	t.Helper()
	l := &ledger{limit: limit, entries: map[types.UID]provisioner.Reservation{}, reserved: map[types.UID]string{}}
	o.Provisioner = func(c *simtest.Cluster) nodeprovisioning.Provisioner {
		l.sched = c.Adapter
		return l
	}
	return simtest.Start(t, o), l
}

// machine is a node of 4 CPUs that takes 10 pods, in zone a.
func machine(name string) *v1.Node {
	r := v1.ResourceList{v1.ResourceCPU: resource.MustParse("4"), v1.ResourceMemory: resource.MustParse("16Gi"), v1.ResourcePods: resource.MustParse("10")}
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelHostname: name, v1.LabelTopologyZone: "a"}},
		Status:     v1.NodeStatus{Capacity: r, Allocatable: r},
	}
}

// held is a real machine that is held for its pods.
func held(name string) *v1.Node {
	n := machine(name)
	n.Spec.Unschedulable = true
	n.Annotations = map[string]string{nodeprovisioning.HoldAnnotation: "4102444800"}
	return n
}

// pod asks for that many CPUs.
func pod(name, cpu string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name), Labels: map[string]string{"app": "a"}},
		Spec: v1.PodSpec{SchedulerName: "jit-scheduler", Containers: []v1.Container{{
			Name:      "c",
			Resources: v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu)}},
		}}},
	}
}

// nodesOf says where pods are bound, "" for those that are not.
func nodesOf(c *simtest.Cluster, pods ...string) []string {
	out := make([]string, len(pods))
	for i, p := range pods {
		out[i] = c.Pod(p).Spec.NodeName
	}
	return out
}
