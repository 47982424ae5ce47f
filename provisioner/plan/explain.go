// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
	"github.com/jit-scheduler/jit-scheduler/provisioner/scheduling"
)

// Reasons of Unplaced.
const (
	ReasonNoPool       = "NoNodePool"
	ReasonIncompatible = "NodePoolIncompatible"
	ReasonTooBig       = "NoInstanceTypeFits"
	ReasonLimit        = "NodePoolLimitReached"
	ReasonNoCapacity   = "InsufficientCapacity"
	ReasonNotNode      = "NotNodeRelated"
)

// maxMessage is the length of a message in bytes.
const maxMessage = 250

func sentence(format string, args ...any) string {
	s := fmt.Sprintf(format, args...)
	if len(s) <= maxMessage {
		return s
	}
	s = s[:maxMessage-3]
	for !utf8.ValidString(s) {
		s = s[:len(s)-1]
	}
	return s + "..."
}

// cause is why one pool does not help. The further a pool comes, the more its cause says.
type cause struct {
	stage  int
	reason string
	text   string
}

// explain says why the class's remaining pods have no place, by the pool that came closest to giving one.
func (p *planner) explain(c *class) Unplaced {
	u := Unplaced{Pods: c.rest}
	switch {
	case c.terminal != "":
		u.Reason, u.Message = ReasonNotNode, sentence("no new node can help: %s", c.terminal)
	case len(p.pools) == 0:
		u.Reason = ReasonNoPool
		u.Message = "no NodePool can open NodeClaims now; create one, or see the Ready condition of those that exist"
	default:
		var best cause
		for i, pl := range p.pools {
			if why := p.causeOf(pl, c); i == 0 || why.stage > best.stage {
				best = why
			}
		}
		u.Reason, u.Message = best.reason, sentence("%s", best.text)
		if n := len(p.pools) - 1; n > 0 {
			if long := fmt.Sprintf("%s (%d other NodePools do not help either)", best.text, n); len(long) <= maxMessage {
				u.Message = long
			}
		}
	}
	return u
}

// causeOf goes through what a pool's machines must satisfy, in order, until nothing is left.
func (p *planner) causeOf(pl *pool, c *class) cause {
	pod := c.Pods[0]
	if taint, _ := pl.tolerated(pod); taint != nil {
		return cause{1, ReasonIncompatible, fmt.Sprintf("NodePool %q has taint %s that the pod does not tolerate; add the toleration, or a NodePool without the taint",
			pl.name, taint.ToString())}
	}
	terms := scheduling.FromPod(pod)
	if why := pl.conflict(terms); why != "" {
		return cause{2, ReasonIncompatible, why}
	}
	types, why := pl.matchingTypes(terms)
	if why != "" {
		return cause{3, ReasonIncompatible, why}
	}
	places := pl.matchingOfferings(types, terms)
	if len(places) == 0 {
		return cause{4, ReasonIncompatible, pl.noOffering(terms)}
	}
	big := slices.DeleteFunc(slices.Clone(places), func(o place) bool { return times(c.request, p.dims.vector(o.typ.Allocatable)) == 0 })
	if len(big) == 0 {
		return cause{5, ReasonTooBig, fmt.Sprintf("no instance type of NodePool %q fits the pod: it needs %s; %s", pl.name, shortage(c.Requests, places), tooBigAdvice)}
	}
	available := slices.DeleteFunc(slices.Clone(big), func(o place) bool { return !o.offering.Available })
	if len(available) == 0 {
		return cause{7, ReasonNoCapacity, fmt.Sprintf("all %d offerings of NodePool %q that fit the pod are out of capacity now (%s); allow more types, zones or capacity types",
			len(big), pl.name, placeNames(big))}
	}
	within := slices.DeleteFunc(slices.Clone(available), func(o place) bool { return !pl.allows(pl.usage(o.typ), 1) })
	if len(within) == 0 {
		return cause{8, ReasonLimit, pl.overLimit(available)}
	}
	return p.refused(pl, c, within)
}

const tooBigAdvice = "lower its requests, or allow larger types"

// conflict says why no requirement of the pod can be met by the pool's own; "" if one can.
func (p *pool) conflict(terms []scheduling.Requirements) string {
	own := p.requirements.Intersect(scheduling.FromLabels(p.labels))
	provided := func(key string) bool {
		return scheduling.WellKnown(key) || key == ebsZoneLabel || slices.ContainsFunc(p.Types, func(t *cloudprovider.InstanceType) bool { _, ok := t.Labels[key]; return ok })
	}
	first := ""
	for _, t := range terms {
		key := own.Conflict(t, provided)
		switch {
		case key == "":
			return ""
		case first != "":
		case scheduling.Restricted(key):
			first = fmt.Sprintf("the pod asks for %s, a label that no NodePool may set; remove it from the pod", t[key])
		default:
			have := "has no such label"
			if r, ok := own[key]; ok {
				have = "has " + r.String()
			}
			first = fmt.Sprintf("the pod asks for %s; NodePool %q %s; change one of them, or add a NodePool", t[key], p.name, have)
		}
	}
	if first == "" {
		return "the pod's node affinity has no term that a node could match"
	}
	return first
}

// offeringKeys are the labels that differ between offerings of one type.
var offeringKeys = map[string]bool{v1.LabelTopologyZone: true, karpv1.CapacityTypeLabelKey: true, "topology.k8s.aws/zone-id": true, ebsZoneLabel: true}

// matchingTypes are the types that pool and pod accept by label, whatever the offering.
func (p *pool) matchingTypes(terms []scheduling.Requirements) ([]*cloudprovider.InstanceType, string) {
	var own, out []*cloudprovider.InstanceType
	for _, t := range p.Types {
		if !p.matchesType(p.requirements, t) {
			continue
		}
		own = append(own, t)
		if slices.ContainsFunc(terms, func(r scheduling.Requirements) bool { return p.matchesType(r, t) }) {
			out = append(out, t)
		}
	}
	if len(own) == 0 {
		return nil, fmt.Sprintf("none of the %d instance types matches the requirements of NodePool %q; widen them", len(p.Types), p.name)
	}
	if len(out) > 0 {
		return out, ""
	}
	for _, term := range terms {
		for _, key := range sortedKeys(term) {
			one := scheduling.NewRequirements(term[key])
			if !slices.ContainsFunc(own, func(t *cloudprovider.InstanceType) bool { return p.matchesType(one, t) }) {
				return nil, fmt.Sprintf("none of the %d instance types of NodePool %q has %s, as the pod asks; widen the NodePool, or add one", len(own), p.name, term[key])
			}
		}
	}
	return nil, fmt.Sprintf("none of the %d instance types of NodePool %q has all labels that the pod asks for; widen the NodePool, or add one", len(own), p.name)
}

// matchesType compares only labels of the type; those of the pool were compared before.
func (p *pool) matchesType(rs scheduling.Requirements, t *cloudprovider.InstanceType) bool {
	for key, r := range rs {
		if _, fixed := p.labels[key]; fixed || offeringKeys[key] || slices.Contains(p.custom, key) {
			continue
		}
		if !r.Matches(t.Labels) {
			return false
		}
	}
	return true
}

// place is an offering of a type.
type place struct {
	typ      *cloudprovider.InstanceType
	offering cloudprovider.Offering
}

func (p *pool) matchingOfferings(types []*cloudprovider.InstanceType, terms []scheduling.Requirements) []place {
	var out []place
	for _, t := range types {
		for _, o := range t.Offerings {
			labels := o.Labels()
			labels[ebsZoneLabel] = o.Zone
			matches := func(rs scheduling.Requirements) bool {
				for key, r := range rs {
					if offeringKeys[key] && !r.Matches(labels) {
						return false
					}
				}
				return true
			}
			if matches(p.requirements) && slices.ContainsFunc(terms, func(r scheduling.Requirements) bool { return p.matchesType(r, t) && matches(r) }) {
				out = append(out, place{t, o})
			}
		}
	}
	return out
}

func (p *pool) noOffering(terms []scheduling.Requirements) string {
	var wants []string
	for _, rs := range append([]scheduling.Requirements{p.requirements}, terms...) {
		for _, key := range sortedKeys(rs) {
			if s := rs[key].String(); offeringKeys[key] && !slices.Contains(wants, s) {
				wants = append(wants, s)
			}
		}
	}
	zones := map[string]bool{}
	for _, t := range p.Types {
		for _, o := range t.Offerings {
			zones[o.Zone+"/"+o.CapacityType] = true
		}
	}
	return fmt.Sprintf("no fitting instance type of NodePool %q is offered with %s (offered: %s); change the pod, or add subnets or capacity types",
		p.name, strings.Join(wants, ", "), strings.Join(sortedKeys(zones), " "))
}

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
				return fmt.Sprintf("%s %s, which no type has", q.String(), name)
			}
			return fmt.Sprintf("%s %s, the largest (%s) has %s", q.String(), name, of, largest.String())
		}
		if name != v1.ResourcePods && !q.IsZero() {
			all = append(all, fmt.Sprintf("%s %s", q.String(), name))
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
		return fmt.Sprintf("NodePool %q is at its limit of %s nodes (%s in use); raise spec.limits.nodes, or remove pods", p.name, l.max.String(), used.String())
	}
	size := amount(l.name, least)
	return fmt.Sprintf("NodePool %q is at its limit of %s %s: %s in use, the smallest type that fits takes %s; raise spec.limits.%s, or remove pods",
		p.name, l.max.String(), l.name, used.String(), size.String(), l.name)
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
		return cause{6, ReasonTooBig, fmt.Sprintf("no instance type of NodePool %q fits the pod beside the %d DaemonSet pods that run there; %s", pl.name, daemons, tooBigAdvice)}
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
