// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// shortage names what the pod needs that no type has, and the largest there is.
func shortage(need v1.ResourceList, places []place) string {
	var all []string
	for _, name := range sortedKeys(need) {
		q := need[name]
		var largest resource.Quantity
		of := ""
		for _, o := range places {
			if have := o.typ.Allocatable[name]; of == "" || have.Cmp(largest) > 0 {
				largest, of = have, o.typ.Name
			}
		}
		if q.Cmp(largest) > 0 {
			if largest.IsZero() {
				return fmt.Sprintf("%s %s, which no type has", show(name, q), name)
			}
			return fmt.Sprintf("%s %s, the largest (%s) has %s", show(name, q), name, of, show(name, largest))
		}
		if name != v1.ResourcePods && !q.IsZero() {
			all = append(all, fmt.Sprintf("%s %s", show(name, q), name))
		}
	}
	return strings.Join(all, " and ") + ", which no type has together"
}

func placeNames(places []place) string {
	seen := map[string]bool{}
	for _, o := range places {
		seen[o.offering.CapacityType+" in "+o.offering.Zone] = true
	}
	names := sortedKeys(seen)
	if len(names) > 3 {
		names = append(names[:3], "...")
	}
	return strings.Join(names, ", ")
}

// overLimit names the limit that leaves no room for the smallest of the types that fit.
func (p *pool) overLimit(places []place) string {
	best, least := -1, int64(0)
	for i, l := range p.limits {
		smallest := int64(-1)
		for _, o := range places {
			if u := p.usage(o.typ)[i]; smallest < 0 || u < smallest {
				smallest = u
			}
		}
		if smallest > 0 && smallest > l.left && (best < 0 || l.left < p.limits[best].left) {
			best, least = i, smallest
		}
	}
	if best < 0 {
		return fmt.Sprintf("NodePool %q: its limits together leave no room for a type that fits the pod; raise spec.limits", p.name)
	}
	l := p.limits[best]
	used := l.max.DeepCopy()
	used.Sub(amount(l.name, l.left))
	if l.name == nodesLimit {
		return fmt.Sprintf("NodePool %q is at its limit of %s nodes (%s in use); raise spec.limits.nodes, or remove pods", p.name, show(l.name, l.max), show(l.name, used))
	}
	return fmt.Sprintf("NodePool %q is at its limit of %s %s: %s in use, the smallest type that fits takes %s; raise spec.limits.%s, or remove pods",
		p.name, show(l.name, l.max), l.name, show(l.name, used), show(l.name, amount(l.name, least)), l.name)
}

// show is a quantity as people write it: CPU in cores, counts without a suffix.
func show(name v1.ResourceName, q resource.Quantity) string {
	switch {
	case name == v1.ResourceCPU:
		return strconv.FormatFloat(float64(q.MilliValue())/1000, 'f', -1, 64)
	case q.Format == resource.DecimalSI && q.Value() < 1e6:
		return strconv.FormatInt(q.Value(), 10)
	default:
		return q.String()
	}
}

// amount is the opposite of units.
func amount(name v1.ResourceName, n int64) resource.Quantity {
	if name == v1.ResourceCPU {
		return *resource.NewMilliQuantity(n, resource.DecimalSI)
	}
	if name == v1.ResourceMemory || name == v1.ResourceEphemeralStorage {
		return *resource.NewQuantity(n, resource.BinarySI)
	}
	return *resource.NewQuantity(n, resource.DecimalSI)
}

// refused explains pods that seem to fit: daemons take the room, minValues cannot be met, or a Filter plugin says no.
func (p *planner) refused(pl *pool, c *class, within []place) cause {
	room, plugins := false, map[string]int{}
	first := map[string]string{}
	var daemons int
	for i, cand := range p.cands {
		if cand.pool != pl {
			continue
		}
		if times(c.request, cand.free) == 0 {
			daemons = max(daemons, len(cand.daemons))
			continue
		}
		room = true
		if c.verdicts == nil || c.verdicts[i].Fits {
			continue
		}
		v := c.verdicts[i]
		plugins[v.Plugin]++
		if first[v.Plugin] == "" {
			first[v.Plugin] = v.Reason
		}
	}
	if !room {
		return cause{6, ReasonTooBig, fmt.Sprintf("no instance type of NodePool %q fits the pod together with the DaemonSet pods that run there (%d); %s", pl.name, daemons, tooBigAdvice)}
	}
	best := ""
	for _, name := range sortedKeys(plugins) {
		if best == "" || plugins[name] > plugins[best] {
			best = name
		}
	}
	if best != "" {
		return cause{10, ReasonIncompatible, fmt.Sprintf("a new node of NodePool %q would not take the pod: %s: %s", pl.name, best, first[best])}
	}
	if len(pl.minValues) > 0 {
		return cause{9, ReasonTooBig, fmt.Sprintf("NodePool %q: too few of its %d offerings that fit the pod to meet its minValues (%s); lower minValues, or allow more types",
			pl.name, len(within), minValuesText(pl))}
	}
	return cause{10, ReasonIncompatible, fmt.Sprintf("a new node of NodePool %q would not take the pod beside the pods placed before it (spread or affinity)", pl.name)}
}

func minValuesText(pl *pool) string {
	var out []string
	for _, key := range sortedKeys(pl.minValues) {
		out = append(out, fmt.Sprintf("%s %d", key, pl.minValues[key]))
	}
	return strings.Join(out, ", ")
}

func sortedKeys[K ~string, V any](m map[K]V) []K {
	out := make([]K, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// unavailableFor names the cloud's reasons, most frequent first.
func unavailableFor(places []place) string {
	counts := map[string]int{}
	for _, o := range places {
		if why := o.offering.Unavailable; why != "" {
			counts[why]++
		}
	}
	if len(counts) == 0 {
		return ""
	}
	reasons := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(counts[b]-counts[a], strings.Compare(a, b))
	})
	const most = 3
	return ": " + strings.Join(reasons[:min(most, len(reasons))], ", ")
}
