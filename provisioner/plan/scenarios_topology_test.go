// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

func minDomains(n int32) func(*v1.Pod) {
	return func(p *v1.Pod) {
		p.Spec.TopologySpreadConstraints[len(p.Spec.TopologySpreadConstraints)-1].MinDomains = &n
	}
}

// TestScenariosTopology are spread and (anti-)affinity, by the ids of the acceptance scenarios.
func TestScenariosTopology(t *testing.T) {
	t.Parallel()
	none := []string{}
	inZones := func(z ...string) []Pool { return []Pool{poolP(catalogue(), require(zone, v1.NodeSelectorOpIn, z...))} }
	x := func(name string) *v1.Pod { return pod(name, app("x")) }
	in := func(z ...string) func(*v1.Pod) { return wants(zone, v1.NodeSelectorOpIn, z...) }
	tests := map[string]scenario{
		"T1": {batches: []batch{{pods: one(pod("a", spreadOver("unknown", 1))), wantTypes: none, wantUnplaced: 1}}},
		"T2": {batches: []batch{{pods: copies(4, pod("a", spreadOver(zone, 1))), wantNodes: -1, wantZones: []int{1, 1, 2}}}},
		"T4": {
			pools: inZones(z1, z2), ready: []*simpleNode{full("n", z3, x("old"))},
			batches: []batch{{pods: copies(6, pod("a", spreadOver(zone, 1))), wantNodes: -1, wantZones: []int{1, 2, 2}, wantUnplaced: 2}},
		},
		"T5": {
			pools: inZones(z3), ready: []*simpleNode{full("n1", z1, x("o1")), full("n2", z2, x("o2"))},
			batches: []batch{{pods: copies(10, pod("a", spreadOver(zone, 5))), wantNodes: -1, wantZones: []int{1, 1, 6}, wantUnplaced: 4}},
		},
		"T8":   {pools: inZones(z1, z2), batches: []batch{{pods: copies(3, pod("a", spreadOver(zone, 1), minDomains(3))), wantNodes: -1, wantZones: []int{1, 1}, wantUnplaced: 1}}},
		"T9":   {batches: []batch{{pods: copies(11, pod("a", spreadOver(zone, 1), minDomains(3))), wantNodes: -1, wantZones: []int{3, 4, 4}}}},
		"T10":  {batches: []batch{{pods: copies(4, pod("a", spreadOver(host, 1))), wantNodes: 4}}},
		"T10b": {note: "skew 4", batches: []batch{{pods: copies(4, pod("a", spreadOver(host, 4))), wantNodes: 1}}},
		"T13": {
			pools:   []Pool{poolP(catalogue(), require(karpv1.CapacityTypeLabelKey, v1.NodeSelectorOpIn, "spot", "on-demand"))},
			note:    "spread over the capacity type",
			batches: []batch{{pods: copies(4, pod("a", spreadOver(karpv1.CapacityTypeLabelKey, 1))), wantNodes: 2}},
		},
		"T14": {batches: []batch{
			{pods: copies(2, pod("a", spreadOver(zone, 1), spreadOver(host, 3))), wantNodes: -1, wantZones: []int{1, 1}},
			{pods: copies(3, pod("b", spreadOver(zone, 1), spreadOver(host, 3))), wantNodes: -1, wantZones: []int{1, 2, 2}},
			{pods: copies(5, pod("c", spreadOver(zone, 1), spreadOver(host, 3))), wantNodes: -1, wantZones: []int{3, 3, 4}},
			{pods: copies(11, pod("d", spreadOver(zone, 1), spreadOver(host, 3))), wantNodes: -1, wantZones: []int{7, 7, 7}},
		}},
		"T20": {batches: []batch{{
			pods:      slices.Concat(copies(5, pod("a", spreadOver(zone, 1), selects(zone, z1))), copies(10, pod("b", spreadOver(zone, 1), selects(zone, z2)))),
			wantNodes: -1, wantZones: []int{5, 10},
		}}},
		"T21": {batches: []batch{
			{pods: copies(6, pod("a", spreadOver(zone, 1), in(z1, z2))), wantNodes: -1, wantZones: []int{3, 3}},
			{pods: copies(1, pod("b", spreadOver(zone, 1), in(z2, z3))), wantNodes: -1, wantZones: []int{1, 3, 3}},
			{pods: copies(5, pod("c", spreadOver(zone, 1))), wantNodes: -1, wantZones: []int{4, 4, 4}},
		}},
		"A1": {batches: []batch{
			{pods: copies(10, pod("s", spreadOver(host, 1))), wantNodes: 10},
			{pods: one(pod("target", app("target"))), wantNodes: -1},
			{pods: one(pod("a", near(host, "target"))), wantNodes: 0},
		}},
		"A3": {ready: []*simpleNode{full("n", z1, x("old"))}, batches: []batch{{pods: copies(10, pod("a", app("x"), near(host, "x"), in(z2, z3))), wantTypes: none, wantUnplaced: 10}}},
		"A4": {batches: []batch{{pods: copies(3, pod("a", app("x"), near(zone, "x"), in(z3))), wantNodes: 1, wantZones: []int{3}}}},
		"A7": {batches: []batch{
			{pods: one(pod("a", app("x"), awayFrom(host, "y")), pod("b", app("y"))), wantNodes: 2},
			{pods: one(pod("c", app("y2")), pod("d", app("x2"), awayFrom(host, "y2"))), wantNodes: 0, wantHosts: []int{2, 2}},
		}},
		"A8": {batches: []batch{
			{pods: one(pod("b1", app("x"), selects(zone, z1)), pod("b2", app("x"), selects(zone, z2)), pod("b3", app("x"), selects(zone, z3))), wantNodes: 3},
			{pods: one(pod("a", awayFrom(zone, "x"))), wantNodes: 0, wantUnplaced: 1},
		}},
		"A9": {
			note:    "better: the big pod's zone is fixed by the plan, so the small one goes elsewhere at once",
			batches: []batch{{pods: one(pod("big", app("x"), asks("cpu=2")), pod("small", awayFrom(zone, "x"))), wantNodes: 2, wantZones: []int{1, 1}}},
		},
		"A11": {note: "better: both in one plan", batches: []batch{{pods: one(pod("a", awayFrom(zone, "x")), pod("x", app("x"))), wantNodes: 2, wantZones: []int{1, 1}}}},
		"A12": {note: "better: all three zones in one plan", batches: []batch{
			{pods: copies(3, pod("a", app("x"), awayFrom(zone, "x"))), wantNodes: 3, wantZones: []int{1, 1, 1}},
			{pods: copies(3, pod("b", app("x"), awayFrom(zone, "x"))), wantTypes: none, wantUnplaced: 3},
		}},
		"A13": {note: "better: all eleven at once, the target's zone free", batches: []batch{
			{pods: append(copies(10, pod("a", near(zone, "target"))), pod("target", app("target"))), wantNodes: -1, wantZones: []int{11}},
		}},
		"A15": {batches: []batch{
			{pods: one(pod("target", app("t"), namespace("other"))), wantNodes: 1},
			{pods: one(pod("a", near(host, "t"))), wantTypes: none, wantUnplaced: 1},
			{pods: one(pod("b", near(host, "t"), func(p *v1.Pod) {
				p.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].Namespaces = []string{"other"}
			})), wantTypes: none},
		}},
		"B08": {note: "a preferred zone is no filter", batches: []batch{{pods: copies(3, pod("a", spreadOver(zone, 1), prefers(1, zone, z1))), wantNodes: 3, wantZones: []int{1, 1, 1}}}},
		"B13": {
			note: "only zones that the pod's selector can reach count", pools: []Pool{
				poolP(catalogue(), named("a", 0), labelled("team", "x"), require(zone, v1.NodeSelectorOpIn, z1, z2)), poolP(catalogue(), named("b", 0), require(zone, v1.NodeSelectorOpIn, z3)),
			},
			batches: []batch{{pods: copies(3, pod("p", spreadOver(zone, 1), selects("team", "x"))), wantNodes: -1, wantZones: []int{1, 2}}},
		},
		"custom": {
			note: "spread over a label that the pool gives", pools: []Pool{poolP(catalogue(), require("capacity-spread", v1.NodeSelectorOpIn, "1", "2", "3"))},
			batches: []batch{{pods: copies(3, pod("p", spreadOver("capacity-spread", 1))), wantNodes: 3}},
		},
	}
	for id, sc := range tests {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			sc.run(t)
		})
	}
}

func namespace(ns string) func(*v1.Pod) { return func(p *v1.Pod) { p.Namespace = ns } }
