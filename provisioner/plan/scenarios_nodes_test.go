// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
)

const host = v1.LabelHostname

// existing is a ready node with labels and pods.
func existing(name, cpu string, labels map[string]string, pods ...*v1.Pod) *simpleNode {
	l := map[string]string{host: name}
	maps.Copy(l, labels)
	return &simpleNode{ready: true, pods: pods, node: &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: l},
		Status:     v1.NodeStatus{Allocatable: v1.ResourceList{"cpu": quantity(cpu), "memory": quantity("64Gi"), "pods": quantity("100")}},
	}}
}

func full(name, inZone string, pods ...*v1.Pod) *simpleNode {
	n := existing(name, "0", map[string]string{zone: inZone}, pods...)
	n.node.Status.Allocatable["pods"] = quantity("0")
	return n
}

// TestScenariosNodes are nodes on their way, ready nodes, daemons and pools, by the ids of the acceptance scenarios.
func TestScenariosNodes(t *testing.T) {
	t.Parallel()
	none := []string{}
	ds := func(change ...func(*v1.Pod)) *v1.Pod { return pod("daemon", change...) }
	onlyAMD := require(v1.LabelArchStable, v1.NodeSelectorOpIn, "amd64")
	app1 := one(pod("a", asks("cpu=1", "memory=1Gi")))
	tests := map[string]scenario{
		"E1": {batches: []batch{{pods: one(pod("a", asks("cpu=10m"))), wantNodes: 1}, {pods: one(pod("b", asks("cpu=10m"))), wantNodes: 0}}},
		"E3": {batches: []batch{
			{pods: copies(4, pod("a", asks("cpu=10m"), spreadOver(zone, 1))), wantNodes: -1, wantZones: []int{1, 1, 2}},
			{pods: copies(5, pod("b", asks("cpu=10m"), spreadOver(zone, 1))), wantNodes: 0, wantZones: []int{3, 3, 3}},
		}},
		"E4": {batches: []batch{
			{pods: copies(4, pod("a", spreadOver(host, 1))), wantNodes: 4},
			{pods: copies(5, pod("b", spreadOver(host, 1))), wantNodes: 5, wantHosts: slices.Repeat([]int{1}, 9)},
		}},
		"E11": {batches: []batch{{pods: copies(2, pod("a", port(80))), wantNodes: 2}}},
		"E12": {ready: []*simpleNode{existing("n", "4", nil)}, batches: []batch{{pods: one(pod("a", asks("cpu=1"))), wantTypes: none}}},
		"E13": {
			ready: []*simpleNode{existing("n", "4", nil)}, pools: []Pool{poolP(catalogue(), labelled("team", "x"))},
			batches: []batch{{pods: one(pod("a", selects("team", "x"))), wantNodes: 1}},
		},
		"D1": {pools: []Pool{poolP(catalogue(), onlyAMD, daemons(ds(asks("cpu=2", "memory=2Gi"))))}, batches: []batch{{pods: app1, wantTypes: []string{"default"}}}},
		"D2": {pools: []Pool{poolP(catalogue(), daemons(ds(port(8080))))}, batches: []batch{{pods: one(pod("a", port(8080))), wantTypes: none, wantUnplaced: 1}}},
		"D3": {pools: []Pool{poolP(catalogue(), daemons(ds(asks("cpu=1"), func(p *v1.Pod) {
			p.Spec.Containers[0].Resources.Limits = v1.ResourceList{"cpu": quantity("10000"), "memory": quantity("10000Gi")}
		})))}, batches: []batch{{pods: app1, wantTypes: none, wantUnplaced: 1}}},
		"D5a": {
			pools:   []Pool{poolP(catalogue(), tainted(v1.TaintEffectNoSchedule), daemons(ds(asks("cpu=2", "memory=2Gi"))))},
			batches: []batch{{pods: one(pod("a", asks("cpu=1", "memory=1Gi"), tolerate("team"))), wantTypes: []string{"small"}}},
		},
		"D5b": {pools: []Pool{poolP(catalogue(), daemons(ds(asks("cpu=2", "memory=2Gi"), selects("unknown", "x"))))}, batches: []batch{{pods: app1, wantTypes: []string{"small"}}}},
		"D5c": {
			pools:   []Pool{poolP(catalogue(), daemons(ds(asks("cpu=2", "memory=2Gi"), wants(v1.LabelInstanceTypeStable, v1.NodeSelectorOpIn, "missing"))))},
			batches: []batch{{pods: app1, wantTypes: []string{"small"}}},
		},
		"D6": {
			note:    "better: daemons are counted per type, so the small type is too small and the default one is not",
			pools:   []Pool{poolP(catalogue(), onlyAMD, daemons(ds(asks("cpu=1"), selects("size", "small")), ds(asks("cpu=10"), selects("size", "large"))))},
			batches: []batch{{pods: app1, wantTypes: []string{"default"}}},
		},
		"D7a": {pools: []Pool{poolP(catalogue(), onlyAMD, daemons(ds(asks("cpu=2", "memory=2Gi"), prefers(1, "foo", "impossible"))))}, batches: []batch{{pods: app1, wantTypes: []string{"default"}}}},
		"D7b": {pools: []Pool{poolP(catalogue(), onlyAMD, tainted(v1.TaintEffectPreferNoSchedule), daemons(ds(asks("cpu=2", "memory=2Gi"))))}, batches: []batch{{pods: app1, wantTypes: []string{"default"}}}},
		"P3":  {pools: []Pool{poolP([]*cloudprovider.InstanceType{typ("single-pod", "amd64", 4, 4, 1)})}, batches: []batch{{pods: copies(3, pod("a")), wantNodes: 3}}},
		"P5": {
			pools:   []Pool{poolP(catalogue(), limited(v1.ResourceList{"cpu": quantity("20")}, v1.ResourceList{"cpu": quantity("100")}))},
			batches: []batch{{pods: one(pod("a")), wantTypes: none, wantUnplaced: 1}},
		},
		"P7": {
			pools:   []Pool{poolP(catalogue(), limited(v1.ResourceList{"cpu": quantity("3")}, nil))},
			batches: []batch{{pods: copies(2, pod("a", asks("cpu=1.5"), app("x"), awayFrom(host, "x"))), wantNodes: 1, wantUnplaced: 1}},
		},
		"P8": {
			pools:   []Pool{poolP(catalogue(), limited(v1.ResourceList{"cpu": quantity("2")}, nil))},
			batches: []batch{{pods: one(pod("a", asks("cpu=1.75"))), wantNodes: 1}, {pods: one(pod("b", asks("cpu=1.75"))), wantNodes: 0, wantUnplaced: 1}},
		},
		"P9": {pools: []Pool{poolP(catalogue(), limited(v1.ResourceList{"nodes": quantity("2")}, nil))}, batches: []batch{
			{pods: one(pod("a", app("x"), awayFrom(host, "x"))), wantNodes: 1},
			{pods: one(pod("b", app("x"), awayFrom(host, "x"))), wantNodes: 1},
			{pods: one(pod("c", app("x"), awayFrom(host, "x"))), wantNodes: 0, wantUnplaced: 1},
		}},
		"B46": {
			note: "exact node limit within one batch", pools: []Pool{poolP(catalogue(), limited(v1.ResourceList{"nodes": quantity("3")}, v1.ResourceList{"nodes": quantity("1")}))},
			batches: []batch{{pods: copies(5, pod("a", app("x"), awayFrom(host, "x"))), wantNodes: 2, wantUnplaced: 3}},
		},
		"P11": {
			pools:   []Pool{poolP(catalogue(), named("a", 0), tainted(v1.TaintEffectPreferNoSchedule)), poolP(catalogue(), named("b", 0))},
			batches: []batch{{pods: one(pod("a")), wantNodes: 1, wantOK: from("b")}},
		},
		"P12": {
			pools:   []Pool{poolP(catalogue(), named("a", 0), tainted(v1.TaintEffectPreferNoSchedule))},
			batches: []batch{{pods: one(pod("a", prefers(2, zone, "nowhere"), prefers(1, "foo", "bar"))), wantNodes: 1, wantOK: from("a")}},
		},
		"weight": {
			note: "a lower-weight pool only when the higher one cannot", pools: []Pool{
				poolP(catalogue(), named("cheap", 1)), poolP([]*cloudprovider.InstanceType{priced("dear", 4, 100)}, named("heavy", 10), limited(v1.ResourceList{"cpu": quantity("4")}, nil)),
			},
			batches: []batch{{pods: copies(3, pod("a", asks("cpu=1"))), wantNodes: 1, wantOK: from("heavy")}, {pods: copies(3, pod("b", asks("cpu=1"))), wantNodes: 1, wantOK: from("cheap")}},
		},
		"B22": {note: "affinity before its target in the queue", batches: []batch{{pods: one(pod("b", app("b"), near(host, "a")), pod("c", app("a"), awayFrom(zone, "none"))), wantNodes: 1}}},
		"B37": {
			pools:   []Pool{poolP(catalogue(), tainted(v1.TaintEffectNoSchedule), daemons(slices.Repeat([]*v1.Pod{ds(asks("cpu=200m"), tolerate("team"))}, 4)...))},
			batches: []batch{{pods: one(pod("a", asks("cpu=1.5"), tolerate("team"))), wantTypes: []string{"default"}}},
		},
		"priority": {
			note: "what is left of a limit goes to the first in the queue", pools: []Pool{poolP(catalogue(), limited(v1.ResourceList{"cpu": quantity("2")}, nil))},
			batches: []batch{{pods: one(pod("hi", asks("cpu=1.5"), priorityOf(10)), pod("lo", asks("cpu=1"))), wantTypes: []string{"small"}, wantUnplaced: 1, wantOK: holds("hi")}},
		},
	}
	for id, sc := range tests {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			sc.run(t)
		})
	}
}

func priorityOf(n int32) func(*v1.Pod) { return func(p *v1.Pod) { p.Spec.Priority = &n } }

func from(pool string) func(*testing.T, Result) {
	return func(t *testing.T, r Result) {
		t.Helper()
		for _, n := range r.Opened {
			if n.Pool != pool {
				t.Errorf("%s is of pool %s, want %s", n.Name, n.Pool, pool)
			}
		}
	}
}

func holds(name string) func(*testing.T, Result) {
	return func(t *testing.T, r Result) {
		t.Helper()
		if len(r.Opened) == 0 || r.Opened[0].Pods[0].Name != name {
			t.Errorf("first node does not hold %s", name)
		}
	}
}

// TestScenarioE9 checks that at most one node has room for another pod.
func TestScenarioE9(t *testing.T) {
	t.Parallel()
	it := typ("t", "amd64", 4, 16, 4)
	it.Capacity["cpu"], it.Allocatable["cpu"] = quantity("4.25"), quantity("4.15")
	w := &world{s: Snapshot{Pools: []Pool{poolP([]*cloudprovider.InstanceType{it})}}}
	for i, n := range []int{3, 1, 7, 2, 5, 11, 1, 1, 4} {
		w.plan(t, copies(n, pod(fmt.Sprintf("b%d", i), asks("cpu=1"))))
		spare := 0
		for _, in := range w.incoming {
			if q := in.free["cpu"]; q.MilliValue() >= 1000 {
				spare++
			}
		}
		if spare > 1 {
			t.Errorf("after batch %d %d nodes have a spare CPU", i+1, spare)
		}
	}
}
