// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
)

const zone = v1.LabelTopologyZone

func one(pods ...*v1.Pod) []*v1.Pod { return pods }

func lists(n int) func(*testing.T, Result) {
	return func(t *testing.T, r Result) {
		t.Helper()
		for _, o := range r.Opened {
			names := map[string]bool{}
			for _, opt := range o.Options {
				names[opt.InstanceType.Name] = true
			}
			if len(names) != n {
				t.Errorf("%s lists %d types, want %d", o.Name, len(names), n)
			}
		}
	}
}

// TestScenariosTypes are requirements, type choice and minValues, by the ids of the acceptance scenarios.
func TestScenariosTypes(t *testing.T) {
	t.Parallel()
	gen := func(n int) *cloudprovider.InstanceType {
		it := priced(fmt.Sprintf("g%d", n), 1<<(n-2), float64(n))
		it.Labels["karpenter.k8s.aws/instance-generation"] = fmt.Sprint(n)
		return it
	}
	t1t2 := []*cloudprovider.InstanceType{priced("T1", 1, 1), priced("T2", 4, 4)}
	perOffering := func(name string, od, spot float64) *cloudprovider.InstanceType {
		it := priced(name, 4, od)
		for i := range it.Offerings {
			if it.Offerings[i].CapacityType == "spot" {
				it.Offerings[i].Price = spot
			}
		}
		return it
	}
	unavailable := func(types []*cloudprovider.InstanceType) []*cloudprovider.InstanceType {
		for _, it := range types {
			for i := range it.Offerings {
				it.Offerings[i].Available = false
			}
		}
		return types
	}
	none := []string{}
	tests := map[string]scenario{
		"S1":  {batches: []batch{{pods: one(pod("a", selects("foo", "bar"))), wantTypes: none, wantUnplaced: 1}}},
		"S2a": {batches: []batch{{pods: one(pod("a", wants("foo", v1.NodeSelectorOpNotIn, "x"))), wantNodes: 1}}},
		"S2b": {batches: []batch{{pods: one(pod("a", wants("foo", v1.NodeSelectorOpDoesNotExist))), wantNodes: 1}}},
		"S3":  {batches: []batch{{pods: one(pod("a", wants("foo", v1.NodeSelectorOpExists))), wantTypes: none, wantUnplaced: 1}}},
		"S5": {note: "pods have only Gt and Lt of integers in the core API", batches: []batch{
			{pods: one(pod("a", wants("integer", v1.NodeSelectorOpGt, "15"))), wantTypes: []string{"arm"}},
			{pods: one(pod("b", wants("integer", v1.NodeSelectorOpLt, "3"))), wantTypes: []string{"small"}},
		}},
		"S6": {batches: []batch{{pods: one(pod("a", wants(zone, v1.NodeSelectorOpNotIn, z1, z2, "unknown"))), wantNodes: 1, wantPlaces: []string{z3}}}},
		"S7": {batches: []batch{{
			pods:      one(pod("a", wants(zone, v1.NodeSelectorOpIn, z1, z2, z3, "unknown"), prefers(1, zone, z2, "unknown"))),
			wantNodes: 1, wantPlaces: []string{z2},
		}}},
		"S9":   {batches: []batch{{pods: one(pod("a", selects(v1.LabelHostname, "x"))), wantTypes: none, wantUnplaced: 1}}},
		"S10a": {batches: []batch{{pods: one(pod("a", selects("x.karpenter.sh/y", "z"))), wantTypes: none, wantUnplaced: 1}}},
		"S10b": {
			pools:   []Pool{poolP(catalogue(), labelled("node.kubernetes.io/role", "z"))},
			batches: []batch{{pods: one(pod("a", selects("node.kubernetes.io/role", "z"))), wantNodes: 1}},
		},
		"S11": {
			note: "a pool that is not Ready is not in the snapshot", pools: []Pool{},
			batches: []batch{{pods: one(pod("a")), wantTypes: none, wantUnplaced: 1}},
		},
		"S13": {note: "better: both valid terms stay open to the launch", batches: []batch{{
			pods: one(pod("a",
				wants("foo", v1.NodeSelectorOpIn, "x"), wants(zone, v1.NodeSelectorOpIn, "invalid"), wants(zone, v1.NodeSelectorOpIn, z1), wants(zone, v1.NodeSelectorOpIn, z2))),
			wantNodes: 1, wantPlaces: []string{z1, z2},
		}}},
		"S14": {pools: []Pool{poolP(catalogue(), require(zone, v1.NodeSelectorOpIn, z1, z2))}, batches: []batch{{pods: one(pod("a",
			prefers(100, v1.LabelInstanceTypeStable, "no-such-type"), prefers(50, zone, z2), prefers(1, zone, z1))), wantNodes: 1, wantPlaces: []string{z2}}}},
		"S15": {batches: []batch{{pods: one(pod("a", prefers(1, zone, z1), wants(zone, v1.NodeSelectorOpIn, z3))), wantNodes: 1, wantPlaces: []string{z3}}}},
		"S17": {batches: []batch{
			{pods: one(pod("a", asks("vendor/a=1")), pod("b", asks("vendor/b=1"))), wantTypes: []string{"gpu-a", "gpu-b"}},
			{pods: one(pod("c", asks("vendor/a=2", "vendor/b=2"))), wantTypes: none, wantUnplaced: 1},
		}},
		"S18": {batches: []batch{{pods: one(pod("a", asks("memory=100M"))), wantTypes: []string{"small"}}}},
		"S19": {batches: []batch{{
			pods:      one(pod("a", asks("cpu=1"), func(p *v1.Pod) { p.Spec.Overhead = v1.ResourceList{"cpu": quantity("2")} })),
			wantTypes: []string{"default"},
		}}},
		"S21": {batches: []batch{{
			pods:      copies(40, pod("a", asks("memory=1.8G"), selects(v1.LabelArchStable, "amd64"))),
			wantTypes: slices.Repeat([]string{"default"}, 20),
		}}},
		"S22": {batches: []batch{{pods: slices.Concat(copies(40, pod("a", asks("memory=1.8G"), selects(v1.LabelArchStable, "amd64"))),
			copies(20, pod("b", asks("memory=400M"), selects(v1.LabelArchStable, "amd64")))), wantTypes: slices.Repeat([]string{"default"}, 20)}}},
		"S23": {
			note:  "better: one node of L5 for the large pod, the small one on L2; both together need more than L5 has",
			pools: []Pool{poolP(ladder(5))}, batches: []batch{{pods: one(pod("a", asks("cpu=4.5")), pod("b", asks("cpu=1"))), wantTypes: []string{"L2", "L5"}}},
		},
		"S25": {batches: []batch{{pods: copies(25, pod("a", asks("cpu=1m"), selects(v1.LabelArchStable, "amd64"))), wantTypes: slices.Repeat([]string{"small"}, 5)}}},
		"S26": {batches: []batch{
			{pods: one(pod("a", asks("cpu=1"), initAsks("cpu=2"))), wantTypes: []string{"default"}},
			{pods: one(pod("b", asks("cpu=1"), initAsks("cpu=20"))), wantTypes: none, wantUnplaced: 1},
		}},
		"S27": {
			pools:   []Pool{poolP([]*cloudprovider.InstanceType{priced("small", 1, 2), priced("medium", 2, 3), priced("large", 4, 1)})},
			batches: []batch{{pods: one(pod("a", asks("cpu=1m"))), wantTypes: []string{"large"}, wantOK: lists(3)}},
		},
		"I2": {pools: []Pool{poolP(ladder(3))}, batches: []batch{{pods: one(pod("a", selects(v1.LabelArchStable, "arm64"))), wantTypes: none, wantUnplaced: 1}}},
		"I4": {
			pools: []Pool{poolP([]*cloudprovider.InstanceType{perOffering("A", 1.0, 0.2), perOffering("B", 1.3, 0.1)},
				require(karpv1.CapacityTypeLabelKey, v1.NodeSelectorOpIn, "on-demand"))},
			batches: []batch{{pods: one(pod("a")), wantTypes: []string{"A"}}},
		},
		"O2": {pools: []Pool{poolP(unavailable(catalogue()))}, batches: []batch{{pods: one(pod("a")), wantTypes: none, wantUnplaced: 1}}},
		"M1": {
			pools:   []Pool{poolP(t1t2, atLeast(2, v1.LabelInstanceTypeStable, v1.NodeSelectorOpIn, "T1", "T2"))},
			batches: []batch{{pods: copies(2, pod("a", asks("cpu=0.9"))), wantNodes: 2, wantOK: lists(2)}},
		},
		"M2": {
			pools:   []Pool{poolP([]*cloudprovider.InstanceType{gen(2), gen(3), gen(4)}, atLeast(2, "karpenter.k8s.aws/instance-generation", v1.NodeSelectorOpGt, "2"))},
			batches: []batch{{pods: copies(2, pod("a", asks("cpu=1.5"))), wantNodes: 2}},
		},
		"M4": {
			pools: []Pool{poolP([]*cloudprovider.InstanceType{priced("T1", 1, 1), priced("T2", 4, 4), priced("T3", 4, 4)},
				atLeast(1, v1.LabelInstanceTypeStable, v1.NodeSelectorOpIn, "T1", "T2", "T3"), atLeast(2, v1.LabelInstanceTypeStable, v1.NodeSelectorOpNotIn, "T3"))},
			batches: []batch{{pods: copies(2, pod("a", asks("cpu=0.9"))), wantNodes: 2}},
		},
		"M5": {
			pools:   []Pool{poolP(ladder(10), atLeast(11, v1.LabelInstanceTypeStable, v1.NodeSelectorOpExists))},
			batches: []batch{{pods: one(pod("a")), wantTypes: none, wantUnplaced: 1}},
		},
		"M6": {
			maxTypes: 1, pools: []Pool{poolP(t1t2, atLeast(2, v1.LabelInstanceTypeStable, v1.NodeSelectorOpIn, "T1", "T2"))},
			batches: []batch{{pods: copies(2, pod("a", asks("cpu=0.9"))), wantTypes: none, wantUnplaced: 2}},
		},
		"M8": {
			pools:   []Pool{poolP(t1t2, atLeast(3, v1.LabelInstanceTypeStable, v1.NodeSelectorOpIn, "T1", "T2", "T3"))},
			batches: []batch{{pods: one(pod("a")), wantTypes: none, wantUnplaced: 1}},
		},
		"M12": {
			note: "Strict", pools: []Pool{poolP(catalogue(), atLeast(3, zone, v1.NodeSelectorOpExists))},
			batches: []batch{{pods: one(pod("a", selects(zone, z1))), wantTypes: none, wantUnplaced: 1}, {pods: one(pod("b")), wantNodes: 1, wantPlaces: []string{z1, z2, z3}}},
		},
	}
	for id, sc := range tests {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			sc.run(t)
		})
	}
}

func initAsks(requests ...string) func(*v1.Pod) {
	return func(p *v1.Pod) {
		c := podOf("", requests...).Spec.Containers[0]
		c.Name = "init"
		p.Spec.InitContainers = append(p.Spec.InitContainers, c)
	}
}

// TestScenarioI3 checks that equal pods always share one node whose options all hold them.
func TestScenarioI3(t *testing.T) {
	t.Parallel()
	var types []*cloudprovider.InstanceType
	for _, cpu := range []int{1, 2, 4, 8, 16, 32, 64} {
		for _, mem := range []int{1, 2, 4, 8, 16, 32, 64, 128} {
			types = append(types, typ(fmt.Sprintf("c%dm%d", cpu, mem), "amd64", cpu, mem, 5))
		}
	}
	for _, cpu := range []string{"100m", "1", "2", "2.5", "4", "8", "16"} {
		for _, mem := range []string{"100Mi", "1Gi", "2Gi", "4Gi", "8Gi", "16Gi", "32Gi"} {
			sc := scenario{
				note:  "the pods' price decides, so several nodes can be cheaper than one: every option holds them (check)",
				pools: []Pool{poolP(types)}, batches: []batch{{pods: copies(3, pod("a", asks("cpu="+cpu, "memory="+mem))), wantNodes: -1}},
			}
			sc.run(t)
		}
	}
}
