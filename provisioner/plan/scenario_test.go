// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
	"github.com/jit-scheduler/jit-scheduler/provisioner/scheduling"
)

// Zones of the scenarios.
const z1, z2, z3 = "test-zone-1", "test-zone-2", "test-zone-3"

// typ makes a type of the scenarios' fake provider: spot in Z1 and Z2, on-demand in all three zones, overhead of 100m
// CPU and 10Mi, and the given extra resources.
func typ(name, arch string, cpu, memGi, pods int, extra ...string) *cloudprovider.InstanceType {
	capacity := v1.ResourceList{"cpu": quantity(strconv.Itoa(cpu)), "memory": quantity(fmt.Sprintf("%dGi", memGi)), "pods": quantity(strconv.Itoa(pods))}
	price := 0.1*float64(cpu) + 0.1*float64(memGi)*1.073741824
	for _, e := range extra {
		capacity[v1.ResourceName(e)] = quantity("2")
		price++
	}
	it := &cloudprovider.InstanceType{
		Name: name, Capacity: capacity,
		Allocatable: scheduling.Sub(capacity, v1.ResourceList{"cpu": quantity("100m"), "memory": quantity("10Mi")}),
		Labels: map[string]string{
			v1.LabelInstanceTypeStable: name, v1.LabelArchStable: arch, v1.LabelOSStable: "linux",
			"size": "small", "integer": strconv.Itoa(cpu),
		},
	}
	if cpu > 4 && memGi > 8 {
		it.Labels["size"], it.Labels["special"] = "large", "optional"
	}
	for _, o := range []struct{ zone, capacity string }{{z1, "spot"}, {z2, "spot"}, {z1, "on-demand"}, {z2, "on-demand"}, {z3, "on-demand"}} {
		it.Offerings = append(it.Offerings, cloudprovider.Offering{Zone: o.zone, CapacityType: o.capacity, Price: price, Available: true})
	}
	return it
}

func catalogue() []*cloudprovider.InstanceType {
	return []*cloudprovider.InstanceType{
		typ("small", "amd64", 2, 2, 5), typ("default", "amd64", 4, 4, 5), typ("single-pod", "amd64", 4, 4, 1),
		typ("gpu-a", "amd64", 4, 4, 5, "vendor/a"), typ("gpu-b", "amd64", 4, 4, 5, "vendor/b"), typ("arm", "arm64", 16, 128, 5),
	}
}

// ladder are L1..Ln with i CPU, 2i Gi and 10i pods.
func ladder(n int) []*cloudprovider.InstanceType {
	var out []*cloudprovider.InstanceType
	for i := 1; i <= n; i++ {
		out = append(out, typ(fmt.Sprintf("L%d", i), "amd64", i, 2*i, 10*i))
	}
	return out
}

func priced(name string, cpu int, price float64) *cloudprovider.InstanceType {
	it := typ(name, "amd64", cpu, 4*cpu, 100)
	for i := range it.Offerings {
		it.Offerings[i].Price = price
	}
	return it
}

// poolP is the scenarios' pool P with changes.
func poolP(types []*cloudprovider.InstanceType, change ...func(*Pool)) Pool {
	np := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	np.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "default"}
	np.Spec.Template.Spec.Requirements = []karpv1.NodeSelectorRequirementWithMinValues{requirement(karpv1.CapacityTypeLabelKey, v1.NodeSelectorOpExists)}
	p := Pool{NodePool: np, Types: types}
	for _, c := range change {
		c(&p)
	}
	return p
}

func named(name string, weight int32) func(*Pool) {
	return func(p *Pool) { p.NodePool.Name, p.NodePool.Spec.Weight = name, &weight }
}

func require(key string, op v1.NodeSelectorOperator, values ...string) func(*Pool) {
	return func(p *Pool) {
		s := &p.NodePool.Spec.Template.Spec
		s.Requirements = append(s.Requirements, requirement(key, op, values...))
	}
}

func atLeast(minValues int, key string, op v1.NodeSelectorOperator, values ...string) func(*Pool) {
	return func(p *Pool) {
		r := requirement(key, op, values...)
		r.MinValues = &minValues
		p.NodePool.Spec.Template.Spec.Requirements = append(p.NodePool.Spec.Template.Spec.Requirements, r)
	}
}

func limited(limits, inUse v1.ResourceList) func(*Pool) {
	return func(p *Pool) { p.NodePool.Spec.Limits, p.InUse = karpv1.Limits(limits), inUse }
}

func tainted(effect v1.TaintEffect) func(*Pool) {
	return func(p *Pool) {
		p.NodePool.Spec.Template.Spec.Taints = append(p.NodePool.Spec.Template.Spec.Taints, v1.Taint{Key: "team", Value: "a", Effect: effect})
	}
}

func labelled(key, value string) func(*Pool) {
	return func(p *Pool) {
		if p.NodePool.Spec.Template.Labels == nil {
			p.NodePool.Spec.Template.Labels = map[string]string{}
		}
		p.NodePool.Spec.Template.Labels[key] = value
	}
}

func daemons(pods ...*v1.Pod) func(*Pool) {
	return func(p *Pool) { p.Daemons = append(p.Daemons, pods...) }
}

// pod makes a pod with changes.
func pod(name string, change ...func(*v1.Pod)) *v1.Pod {
	p := podOf(name)
	for _, c := range change {
		c(p)
	}
	return p
}

func asks(requests ...string) func(*v1.Pod) {
	return func(p *v1.Pod) { p.Spec.Containers[0].Resources = podOf("", requests...).Spec.Containers[0].Resources }
}

func selects(key, value string) func(*v1.Pod) {
	return func(p *v1.Pod) {
		if p.Spec.NodeSelector == nil {
			p.Spec.NodeSelector = map[string]string{}
		}
		p.Spec.NodeSelector[key] = value
	}
}

func nodeAffinity(p *v1.Pod) *v1.NodeAffinity {
	if p.Spec.Affinity == nil {
		p.Spec.Affinity = &v1.Affinity{}
	}
	if p.Spec.Affinity.NodeAffinity == nil {
		p.Spec.Affinity.NodeAffinity = &v1.NodeAffinity{}
	}
	return p.Spec.Affinity.NodeAffinity
}

// wants adds a required node affinity term: any of them is enough.
func wants(key string, op v1.NodeSelectorOperator, values ...string) func(*v1.Pod) {
	return func(p *v1.Pod) {
		a := nodeAffinity(p)
		if a.RequiredDuringSchedulingIgnoredDuringExecution == nil {
			a.RequiredDuringSchedulingIgnoredDuringExecution = &v1.NodeSelector{}
		}
		r := a.RequiredDuringSchedulingIgnoredDuringExecution
		r.NodeSelectorTerms = append(r.NodeSelectorTerms, v1.NodeSelectorTerm{
			MatchExpressions: []v1.NodeSelectorRequirement{{Key: key, Operator: op, Values: values}},
		})
	}
}

func prefers(weight int32, key string, values ...string) func(*v1.Pod) {
	return func(p *v1.Pod) {
		a := nodeAffinity(p)
		a.PreferredDuringSchedulingIgnoredDuringExecution = append(a.PreferredDuringSchedulingIgnoredDuringExecution,
			v1.PreferredSchedulingTerm{Weight: weight, Preference: v1.NodeSelectorTerm{
				MatchExpressions: []v1.NodeSelectorRequirement{{Key: key, Operator: v1.NodeSelectorOpIn, Values: values}},
			}})
	}
}

func app(name string) func(*v1.Pod) {
	return func(p *v1.Pod) { p.Labels = map[string]string{"app": name} }
}

func term(key, to string) v1.PodAffinityTerm {
	return v1.PodAffinityTerm{TopologyKey: key, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": to}}}
}

func near(key, to string) func(*v1.Pod) {
	return func(p *v1.Pod) {
		if p.Spec.Affinity == nil {
			p.Spec.Affinity = &v1.Affinity{}
		}
		p.Spec.Affinity.PodAffinity = &v1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{term(key, to)}}
	}
}

func awayFrom(key, from string) func(*v1.Pod) {
	return func(p *v1.Pod) {
		if p.Spec.Affinity == nil {
			p.Spec.Affinity = &v1.Affinity{}
		}
		p.Spec.Affinity.PodAntiAffinity = &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{term(key, from)}}
	}
}

func port(n int32) func(*v1.Pod) {
	return func(p *v1.Pod) {
		p.Spec.Containers[0].Ports = append(p.Spec.Containers[0].Ports, v1.ContainerPort{HostPort: n, ContainerPort: n, Protocol: v1.ProtocolTCP})
	}
}

func tolerate(key string) func(*v1.Pod) {
	return func(p *v1.Pod) {
		p.Spec.Tolerations = append(p.Spec.Tolerations, v1.Toleration{Key: key, Operator: v1.TolerationOpExists})
	}
}

// world is what lasts between the batches of a scenario.
type world struct {
	s        Snapshot
	ready    []*simpleNode
	incoming []*incoming
	counter  int
}

// incoming is a NodeClaim of an earlier batch.
type incoming struct {
	node    *v1.Node
	free    v1.ResourceList
	pods    []*v1.Pod
	daemons []*v1.Pod
	pool    string
}

// plan runs one batch and takes its result over.
func (w *world) plan(t testing.TB, pods []*v1.Pod) Result {
	t.Helper()
	f := newSimple()
	for _, n := range w.ready {
		f.add(n)
	}
	w.s.Open = nil
	for _, in := range w.incoming {
		f.add(&simpleNode{node: in.node, pods: slices.Clone(in.pods), daemons: in.daemons})
		w.s.Open = append(w.s.Open, OpenNode{Name: in.node.Name, Pool: in.pool, Free: in.free})
	}
	w.s.Classes = Classes(pods)
	r := Plan(w.s, f)
	check(t, w.s, r)
	for _, j := range r.Joined {
		in := w.incoming[slices.IndexFunc(w.incoming, func(in *incoming) bool { return in.node.Name == j.Node })]
		in.pods = append(in.pods, j.Pods...)
		for _, p := range j.Pods {
			in.free = scheduling.Sub(in.free, scheduling.Requests(p))
		}
	}
	for _, n := range r.Opened {
		w.takeOver(n)
	}
	return r
}

// takeOver makes an opened node one that was launched as its cheapest option.
func (w *world) takeOver(n NewNode) {
	w.counter++
	in := &incoming{node: n.Node.DeepCopy(), pods: n.Pods, daemons: n.Daemons, pool: n.Pool}
	in.node.Name = fmt.Sprintf("claim-%d", w.counter)
	in.node.Labels[v1.LabelHostname] = in.node.Name
	in.free = scheduling.Sub(n.Options[0].InstanceType.Allocatable, n.Requests)
	for i := range w.s.Pools {
		if w.s.Pools[i].NodePool.Name == n.Pool {
			w.s.Pools[i].InUse = scheduling.Add(w.s.Pools[i].InUse, n.Options[0].InstanceType.Capacity, v1.ResourceList{"nodes": quantity("1")})
		}
	}
	w.incoming = append(w.incoming, in)
}

// domains counts the pods of the world by the value of a label of their nodes, in order of the counts.
func (w *world) domains(key string) []int {
	counts := map[string]int{}
	for _, in := range w.incoming {
		counts[in.node.Labels[key]] += len(in.pods)
	}
	for _, n := range w.ready {
		counts[n.node.Labels[key]] += len(n.pods)
	}
	var out []int
	for _, c := range counts {
		if c > 0 {
			out = append(out, c)
		}
	}
	slices.Sort(out)
	return out
}

func messagesOf(r Result) string {
	var out []string
	for _, u := range r.Unplaced {
		out = append(out, fmt.Sprintf("%d unplaced: %s", len(u.Pods), u.Message))
	}
	return strings.Join(out, "; ")
}

func unplaced(r Result) int {
	n := 0
	for _, u := range r.Unplaced {
		n += len(u.Pods)
	}
	return n
}

func typesOf(r Result) []string {
	var out []string
	for _, n := range r.Opened {
		out = append(out, n.Options[0].InstanceType.Name)
	}
	slices.Sort(out)
	return out
}

// placesOf are the zones and capacity types that a node's options have between them.
func placesOf(r Result, key string) []string {
	seen := map[string]bool{}
	for _, n := range r.Opened {
		for _, o := range n.Options {
			seen[o.Offering.Labels()[key]] = true
		}
	}
	return sortedKeys(seen)
}

// batch is one planning pass of a scenario and what it must come to.
type batch struct {
	pods []*v1.Pod
	// wantTypes are the cheapest types of the nodes opened, in order; nil: not looked at, empty: none.
	wantTypes []string
	// wantNodes is their number, -1: not looked at.
	wantNodes    int
	wantUnplaced int
	// wantZones counts all pods so far by zone; wantHosts by node.
	wantZones, wantHosts []int
	// wantPlaces are the zones among the options.
	wantPlaces []string
	wantOK     func(t *testing.T, r Result)
}

type scenario struct {
	note     string
	pools    []Pool
	ready    []*simpleNode
	maxTypes int
	batches  []batch
}

func (sc scenario) run(t *testing.T) {
	t.Helper()
	if sc.pools == nil {
		sc.pools = []Pool{poolP(catalogue())}
	}
	w := &world{s: Snapshot{Pools: sc.pools, MaxTypes: sc.maxTypes}, ready: sc.ready}
	for i, b := range sc.batches {
		r := w.plan(t, b.pods)
		id := fmt.Sprintf("batch %d (%s; %s)", i+1, strings.Join(shapesOf(r), " "), messagesOf(r))
		if b.wantTypes != nil {
			if diff := cmp.Diff(b.wantTypes, append([]string{}, typesOf(r)...)); diff != "" {
				t.Errorf("%s: types (-want +got):\n%s", id, diff)
			}
		} else if b.wantNodes >= 0 && len(r.Opened) != b.wantNodes {
			t.Errorf("%s: %d nodes, want %d", id, len(r.Opened), b.wantNodes)
		}
		if got := unplaced(r); got != b.wantUnplaced {
			t.Errorf("%s: %d unplaced, want %d", id, got, b.wantUnplaced)
		}
		for key, want := range map[string][]int{v1.LabelTopologyZone: b.wantZones, v1.LabelHostname: b.wantHosts} {
			if want != nil {
				if diff := cmp.Diff(want, w.domains(key)); diff != "" {
					t.Errorf("%s: pods by %s (-want +got):\n%s", id, key, diff)
				}
			}
		}
		if b.wantPlaces != nil {
			if diff := cmp.Diff(b.wantPlaces, placesOf(r, v1.LabelTopologyZone)); diff != "" {
				t.Errorf("%s: zones of the options (-want +got):\n%s", id, diff)
			}
		}
		if b.wantOK != nil {
			b.wantOK(t, r)
		}
	}
}
