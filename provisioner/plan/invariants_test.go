// SPDX-License-Identifier: Apache-2.0

package plan

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jit-scheduler/jit-scheduler/provisioner/scheduling"
)

type failer interface {
	Helper()
	Errorf(format string, args ...any)
}

// check asserts what every Result must satisfy.
func check(t failer, s Snapshot, r Result) {
	t.Helper()
	seen := map[types.UID]string{}
	count := func(list string, pods []*v1.Pod) {
		for _, p := range pods {
			if old, ok := seen[p.UID]; ok {
				t.Errorf("pod %s is in %s and %s", p.Name, old, list)
			}
			seen[p.UID] = list
		}
	}
	for _, pods := range r.Ready {
		count("Ready", pods)
	}
	for _, j := range r.Joined {
		count("Joined", j.Pods)
		if len(j.Pods) == 0 {
			t.Errorf("empty Join of %s", j.Node)
		}
	}
	for _, u := range r.Unplaced {
		count("Unplaced", u.Pods)
		if len(u.Pods) == 0 || u.Reason == "" || u.Message == "" || len(u.Message) > 250 {
			t.Errorf("bad Unplaced: %d pods, %q, %d characters: %q", len(u.Pods), u.Reason, len(u.Message), u.Message)
		}
	}
	for _, n := range r.Opened {
		count("Opened", n.Pods)
		checkNode(t, s, n)
	}
	total := 0
	for _, c := range s.Classes {
		total += len(c.Pods)
	}
	if len(seen) != total {
		t.Errorf("%d pods in the result, %d in the snapshot", len(seen), total)
	}
	checkLimits(t, s, r)
	checkOpen(t, s, r)
}

// checkNode asserts that each option of a new node holds its pods.
func checkNode(t failer, s Snapshot, n NewNode) {
	t.Helper()
	if len(n.Pods) == 0 || len(n.Options) == 0 {
		t.Errorf("%s: %d pods, %d options", n.Name, len(n.Pods), len(n.Options))
		return
	}
	need := v1.ResourceList{}
	for _, p := range n.Pods {
		need = scheduling.Add(need, scheduling.Requests(p))
	}
	names := map[string]bool{}
	for i, o := range n.Options {
		names[o.InstanceType.Name] = true
		if !scheduling.Fits(need, o.InstanceType.Allocatable) {
			t.Errorf("%s: option %s does not hold the pods", n.Name, o.InstanceType.Name)
		}
		if i > 0 && o.Offering.Price < n.Options[i-1].Offering.Price && exotic(o.InstanceType) == exotic(n.Options[i-1].InstanceType) {
			t.Errorf("%s: options are not cheapest first", n.Name)
		}
		if !o.Offering.Available {
			t.Errorf("%s: option %s in %s is not available", n.Name, o.InstanceType.Name, o.Offering.Zone)
		}
	}
	if limit := s.MaxTypes; limit > 0 && len(names) > limit {
		t.Errorf("%s: %d types, at most %d", n.Name, len(names), limit)
	}
	for _, d := range n.Daemons {
		need = scheduling.Add(need, scheduling.Requests(d))
	}
	if !scheduling.Fits(need, n.Node.Status.Allocatable) {
		t.Errorf("%s: node does not hold pods and daemons", n.Name)
	}
	for name, q := range need {
		if got := n.Requests[name]; got.Cmp(q) != 0 {
			t.Errorf("%s: requests %s %s, want %s", n.Name, name, got.String(), q.String())
		}
	}
	if n.Node.Labels[v1.LabelInstanceTypeStable] != n.Options[0].InstanceType.Labels[v1.LabelInstanceTypeStable] ||
		n.Node.Labels[v1.LabelTopologyZone] != n.Options[0].Offering.Zone || n.Node.Labels[v1.LabelHostname] != n.Name {
		t.Errorf("%s: node is not its cheapest option: %v", n.Name, n.Node.Labels)
	}
	rs := scheduling.FromSpecs(n.Requirements)
	delete(rs, v1.LabelHostname)
	if !rs.Matches(n.Node.Labels) {
		t.Errorf("%s: node does not satisfy the claim's requirements %v", n.Name, n.Requirements)
	}
}

// checkLimits counts each new node as the largest of its options.
func checkLimits(t failer, s Snapshot, r Result) {
	t.Helper()
	for _, p := range s.Pools {
		for name, limit := range p.NodePool.Spec.Limits {
			used := units(name, p.InUse[name])
			before := used
			for _, n := range r.Opened {
				if n.Pool != p.NodePool.Name {
					continue
				}
				most := int64(0)
				for _, o := range n.Options {
					if name == nodesLimit {
						most = 1
					} else {
						most = max(most, units(name, o.InstanceType.Capacity[name]))
					}
				}
				used += most
			}
			if used > units(name, limit) && used > before {
				t.Errorf("pool %s: %d of %s in use after the plan, limit %s", p.NodePool.Name, used, name, limit.String())
			}
		}
	}
}

func checkOpen(t failer, s Snapshot, r Result) {
	t.Helper()
	free := map[string]v1.ResourceList{}
	for _, o := range s.Open {
		free[o.Name] = o.Free
	}
	for _, j := range r.Joined {
		need := v1.ResourceList{}
		for _, p := range j.Pods {
			need = scheduling.Add(need, scheduling.Requests(p))
		}
		if !scheduling.Fits(need, free[j.Node]) {
			t.Errorf("%s holds more than its free room", j.Node)
		}
	}
}

// largestFirst is what Karpenter's way costs: pods by size onto the largest type that is left after each is added,
// each node then bought as the cheapest type that holds its pods.
func largestFirst(s Snapshot) float64 {
	d := dimsOf(s.Classes, nil)
	types := s.Pools[0].Types
	type bin struct{ need []int64 }
	var bins []*bin
	fits := func(need []int64) bool {
		for _, it := range types {
			if times(need, d.vector(it.Allocatable)) > 0 {
				return true
			}
		}
		return false
	}
	for _, c := range s.Classes {
		req := d.vector(c.Requests)
		for range c.Pods {
			placed := false
			for _, b := range bins {
				sum := make([]int64, len(req))
				for i := range sum {
					sum[i] = b.need[i] + req[i]
				}
				if fits(sum) {
					b.need, placed = sum, true
					break
				}
			}
			if !placed {
				bins = append(bins, &bin{req})
			}
		}
	}
	sum := 0.0
	for _, b := range bins {
		best := -1.0
		for _, it := range types {
			if p := it.Offerings[0].Price; times(b.need, d.vector(it.Allocatable)) > 0 && (best < 0 || p < best) {
				best = p
			}
		}
		sum += best
	}
	return sum
}
