// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
	"github.com/jit-scheduler/jit-scheduler/provisioner/scheduling"
)

// drawn is a random world: equal draws make equal, but separate, inputs.
type drawn struct {
	s     Snapshot
	ready []*simpleNode
	open  []*simpleNode
}

func (d drawn) fitter() *simple {
	f := newSimple()
	for _, n := range slices.Concat(d.ready, d.open) {
		c := *n
		c.pods = slices.Clone(n.pods)
		f.add(&c)
	}
	return f
}

func drawTypes(t *rapid.T) []*cloudprovider.InstanceType {
	var out []*cloudprovider.InstanceType
	for i := range rapid.IntRange(1, 6).Draw(t, "types") {
		it := typ(fmt.Sprintf("t%d", i), "amd64", rapid.SampledFrom([]int{1, 2, 4, 8, 16}).Draw(t, "cpu"), rapid.SampledFrom([]int{1, 2, 8, 32}).Draw(t, "mem"),
			rapid.IntRange(1, 12).Draw(t, "pods"))
		for j := range it.Offerings {
			it.Offerings[j].Available = rapid.IntRange(0, 9).Draw(t, "available") > 0
			it.Offerings[j].Price *= rapid.SampledFrom([]float64{0.5, 1, 1.3}).Draw(t, "price")
		}
		out = append(out, it)
	}
	return out
}

func drawPool(t *rapid.T, name string) Pool {
	changes := []func(*Pool){named(name, rapid.Int32Range(0, 2).Draw(t, "weight"))}
	add := func(label string, f func(*Pool)) {
		if rapid.IntRange(0, 3).Draw(t, label) == 0 {
			changes = append(changes, f)
		}
	}
	add("tainted", tainted(rapid.SampledFrom([]v1.TaintEffect{v1.TaintEffectNoSchedule, v1.TaintEffectPreferNoSchedule}).Draw(t, "effect")))
	add("zones", require(zone, v1.NodeSelectorOpIn, z1, z2))
	add("labelled", labelled("team", "a"))
	add("custom", require("tier", v1.NodeSelectorOpIn, "gold", "silver"))
	add("daemon", daemons(pod("ds", asks("cpu=200m"), port(9100), tolerate("team"))))
	add("minValues", atLeast(2, v1.LabelInstanceTypeStable, v1.NodeSelectorOpExists))
	limits := v1.ResourceList{}
	if rapid.Bool().Draw(t, "cpu limit") {
		limits["cpu"] = quantity(fmt.Sprint(rapid.IntRange(0, 40).Draw(t, "cpus")))
	}
	if rapid.IntRange(0, 3).Draw(t, "node limit") == 0 {
		limits["nodes"] = quantity(fmt.Sprint(rapid.IntRange(0, 4).Draw(t, "nodes")))
	}
	if rapid.IntRange(0, 3).Draw(t, "memory limit") == 0 {
		limits["memory"] = quantity(fmt.Sprintf("%dGi", rapid.IntRange(0, 64).Draw(t, "gi")))
	}
	inUse := v1.ResourceList{"cpu": quantity(fmt.Sprint(rapid.IntRange(0, 10).Draw(t, "in use"))), "nodes": quantity("1")}
	changes = append(changes, limited(limits, inUse))
	return poolP(drawTypes(t), changes...)
}

func drawPods(t *rapid.T) []*v1.Pod {
	var out []*v1.Pod
	for i := range rapid.IntRange(1, 5).Draw(t, "kinds") {
		name := fmt.Sprintf("k%d", i)
		p := pod(name, app(rapid.SampledFrom([]string{"x", "y"}).Draw(t, "app")),
			asks("cpu="+rapid.SampledFrom([]string{"100m", "900m", "2", "5", "50"}).Draw(t, "cpu"), "memory="+rapid.SampledFrom([]string{"10Mi", "1Gi", "6Gi"}).Draw(t, "mem")))
		for _, c := range []func(*v1.Pod){
			spreadOver(zone, 1), spreadOver(host, 2), near(zone, "x"), near(host, "y"), awayFrom(host, "x"), awayFrom(zone, "y"),
			port(80), port(9100), tolerate("team"), selects("team", "a"), selects(zone, z2), selects("tier", "silver"), prefers(1, zone, z3), priorityOf(5), spreadOver("tier", 1),
		} {
			if rapid.IntRange(0, 9).Draw(t, "change") == 0 {
				labels := p.Labels
				c(p)
				p.Labels = labels
			}
		}
		out = append(out, copies(rapid.IntRange(1, 15).Draw(t, "count"), p)...)
	}
	slices.SortStableFunc(out, func(a, b *v1.Pod) int {
		return int(priority(&class{Class: &Class{Pods: one(b)}}) - priority(&class{Class: &Class{Pods: one(a)}}))
	})
	return out
}

func drawWorld(t *rapid.T) drawn {
	d := drawn{s: Snapshot{MaxTypes: rapid.SampledFrom([]int{0, 1, 2, 60}).Draw(t, "max types"), Classes: Classes(drawPods(t))}}
	for i := range rapid.IntRange(0, 2).Draw(t, "pools") {
		d.s.Pools = append(d.s.Pools, drawPool(t, fmt.Sprintf("p%d", i)))
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "ready") {
		d.ready = append(d.ready, existing(fmt.Sprintf("ready-%d", i), rapid.SampledFrom([]string{"1", "4"}).Draw(t, "cpu"), map[string]string{zone: z1}))
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "open") {
		n := existing(fmt.Sprintf("open-%d", i), "8", map[string]string{zone: z2})
		n.ready = false
		d.open = append(d.open, n)
		d.s.Open = append(d.s.Open, OpenNode{Name: n.node.Name, Free: v1.ResourceList{"cpu": quantity(fmt.Sprint(rapid.IntRange(-1, 8).Draw(t, "free"))), "memory": quantity("4Gi"), "pods": quantity("3")}})
	}
	return d
}

// TestPlanHolds checks on random worlds what must hold of every plan.
func TestPlanHolds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := drawWorld(t)
		f := d.fitter()
		r := Plan(d.s, f)
		check(t, d.s, r)
		checkPlaces(t, d, r)
		if again := Plan(d.s, d.fitter()); !cmp.Equal(summary(r), summary(again)) {
			t.Errorf("the same snapshot gave two plans:\n%s", cmp.Diff(summary(r), summary(again)))
		}
	})
}

// summary is a plan as text.
func summary(r Result) []string {
	var out []string
	line := func(what string, pods []*v1.Pod) {
		for _, p := range pods {
			what += " " + p.Name
		}
		out = append(out, what)
	}
	for _, pods := range r.Ready {
		line("ready", pods)
	}
	for _, j := range r.Joined {
		line("join "+j.Node, j.Pods)
	}
	for _, n := range r.Opened {
		requirements, _ := json.Marshal(n.Requirements)
		what := fmt.Sprintf("open %s group %d %s", n.Name, n.Group, requirements)
		for _, o := range n.Options {
			what += fmt.Sprintf(" %s/%s/%s", o.InstanceType.Name, o.Offering.Zone, o.Offering.CapacityType)
		}
		line(what, n.Pods)
	}
	for _, u := range r.Unplaced {
		line("unplaced "+u.Reason+" "+u.Message, u.Pods)
	}
	return out
}

// checkPlaces replays the plan on the nodes as they will be, whatever option each launch takes, and asks the filters
// again: labels, taints, ports and anti-affinity must hold in the end.
func checkPlaces(t *rapid.T, d drawn, r Result) {
	t.Helper()
	f := d.fitter()
	for _, j := range r.Joined {
		f.nodes[j.Node].pods = append(f.nodes[j.Node].pods, j.Pods...)
	}
	for _, n := range r.Opened {
		f.add(&simpleNode{node: n.Node, pods: n.Pods, daemons: n.Daemons})
		pick := n.Options[rapid.IntRange(0, len(n.Options)-1).Draw(t, "launched")]
		node := n.Node.DeepCopy()
		maps.Copy(node.Labels, pick.InstanceType.Labels)
		maps.Copy(node.Labels, pick.Offering.Labels())
		node.Status.Allocatable = pick.InstanceType.Allocatable
		f.nodes[n.Name].node = node
		for i, p := range d.s.Pools {
			if p.NodePool.Name == n.Pool && !scheduling.FromSpecs(d.s.Pools[i].NodePool.Spec.Template.Spec.Requirements).Matches(node.Labels) {
				t.Errorf("%s as %s breaks the requirements of its pool", n.Name, pick.InstanceType.Name)
			}
		}
	}
	for _, n := range r.Opened {
		at := f.nodes[n.Name]
		for i, p := range n.Pods {
			at.pods = slices.Delete(slices.Clone(n.Pods), i, i+1)
			if v := antiAffine(f, p, at); v.Plugin != "" {
				t.Errorf("%s does not take its own pod %s: %s", n.Name, p.Name, v.Reason)
			}
		}
		at.pods = n.Pods
	}
}

// antiAffine is the verdict without the rules that depend on the order of placing (spread, affinity).
func antiAffine(f *simple, pod *v1.Pod, n *simpleNode) Verdict {
	p := pod.DeepCopy()
	p.Spec.TopologySpreadConstraints = nil
	if p.Spec.Affinity != nil {
		p.Spec.Affinity.PodAffinity = nil
	}
	if v := f.verdict(p, n); !v.Fits {
		return v
	}
	return Verdict{}
}
