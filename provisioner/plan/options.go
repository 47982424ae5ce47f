// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/binary"
	"slices"

	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
)

// result collects what was decided.
func (p *planner) result() Result {
	var r Result
	for _, c := range p.classes { // before options widen what the limits must allow for
		if len(c.ready) > 0 {
			r.Ready = append(r.Ready, c.ready)
		}
		if len(c.rest) > 0 {
			r.Unplaced = append(r.Unplaced, p.explain(c))
		}
	}
	groups := map[string]int{}
	for _, same := range p.alike() {
		p.state(&r, same, groups)
	}
	for _, n := range p.nodes {
		if n.chosen == nil && len(n.loads) > 0 {
			r.Joined = append(r.Joined, Join{Node: n.name, Pods: n.pods()})
		}
	}
	return r
}

// state turns alike nodes into NodeClaims, which share what is equal.
func (p *planner) state(r *Result, same *alike, groups map[string]int) {
	options, ok := p.options(same)
	if !ok {
		for _, n := range same.nodes {
			r.Unplaced = append(r.Unplaced, undiverse(n)...)
		}
		return
	}
	var launch []cloudprovider.LaunchOption
	for _, cand := range options {
		launch = append(launch, cloudprovider.LaunchOption{InstanceType: cand.typ, Offering: cand.offering})
	}
	requirements := map[string][]karpv1.NodeSelectorRequirementWithMinValues{} // by the classes on the node
	for _, n := range same.nodes {
		classes := p.classKey(n)
		specs, ok := requirements[classes]
		if !ok {
			specs = requirementsOf(n, options)
			requirements[classes] = specs
		}
		opened := p.newNode(n, options)
		opened.Options, opened.Requirements = launch, specs
		key := string(same.key) + signatureOf(specs)
		if _, ok := groups[key]; !ok {
			groups[key] = len(groups)
		}
		opened.Group = groups[key]
		r.Opened = append(r.Opened, opened)
	}
}

// alike are new nodes that could be the same machines.
type alike struct {
	key   []byte
	nodes []*node
	cands []*candidate
}

// alike groups the new nodes by chosen machine and possible options, in the order of their names' ordinals.
func (p *planner) alike() []*alike {
	var out []*alike
	index := map[string]*alike{}
	held := map[string][]*candidate{} // by chosen machine and load
	for _, n := range p.nodes {
		if n.chosen == nil || len(n.loads) == 0 {
			continue
		}
		load := string(p.loadKey(n))
		cands, ok := held[load]
		if !ok {
			cands = p.holding(n, nil, 0)
			held[load] = cands
		}
		key := binary.AppendUvarint(nil, uint64(n.chosen.index))
		for _, c := range cands {
			key = binary.AppendUvarint(key, uint64(c.index))
		}
		a, ok := index[string(key)]
		if !ok {
			a = &alike{key: key, cands: cands}
			index[string(key)] = a
			out = append(out, a)
		}
		a.nodes = append(a.nodes, n)
	}
	return out
}

// classKey is equal for nodes with pods of the same classes.
func (p *planner) classKey(n *node) string {
	var key []byte
	for i, c := range p.classes {
		if n.count(c) > 0 {
			key = binary.AppendUvarint(key, uint64(i))
		}
	}
	return string(key)
}

// loadKey is equal for nodes of the same machine with the same numbers of pods of the same classes.
func (p *planner) loadKey(n *node) []byte {
	key := binary.AppendUvarint(nil, uint64(n.chosen.index))
	for i, c := range p.classes {
		if k := n.count(c); k > 0 {
			key = binary.AppendUvarint(key, uint64(i))
			key = binary.AppendUvarint(key, uint64(k))
		}
	}
	return key
}

// holding are the candidates, cheapest first, that could stand in for the node with its pods and count more of extra.
func (p *planner) holding(n *node, extra *class, count int) []*candidate {
	need := make([]int64, len(p.dims))
	pins := map[string]string{}
	var classes []*class
	add := func(c *class, k int) {
		classes = append(classes, c)
		for i, q := range c.request {
			need[i] += q * int64(k)
		}
		for _, key := range c.pins {
			pins[key] = n.chosen.node.Labels[key]
		}
	}
	for _, l := range n.loads {
		add(l.class, len(l.pods))
	}
	if extra != nil {
		add(extra, count)
	}
	var out []*candidate
next:
	for _, cand := range p.cands {
		if cand.pool != n.chosen.pool || cand.variant != n.chosen.variant {
			continue
		}
		for i, q := range need {
			if cand.free[i] < q {
				continue next
			}
		}
		for key, v := range pins {
			if cand.node.Labels[key] != v {
				continue next
			}
		}
		for _, c := range classes {
			if cand != n.chosen && (!c.passed(cand) || c.prefers(n.chosen) && !c.prefers(cand)) {
				continue next
			}
		}
		out = append(out, cand)
	}
	return out
}

// passed says whether the class was found to fit the candidate in the domain where its node is.
func (c *class) passed(cand *candidate) bool {
	if ok := c.domainOK[domainOf(cand, c.keys)]; ok != nil {
		return ok[cand.index]
	}
	return c.verdicts != nil && c.verdicts[cand.index].Fits
}

// options are the candidates that each of the alike nodes lists. Under limits all of them count as the largest that
// they list, so options too large for what is left are dropped. false if the rest does not meet minValues.
func (p *planner) options(a *alike) ([]*candidate, bool) {
	pl := a.nodes[0].chosen.pool
	cands := pl.plainFirst(a.cands)
	size := int64(len(a.nodes))
	if len(pl.limits) == 0 {
		return p.diverse(pl, cands)
	}
	pl.take(a.nodes[0].chosen.use, -size)
	most := make([]int64, len(pl.limits))
	types := map[string]bool{}
	var out []*candidate
	for _, cand := range cands {
		if len(pl.minValues) == 0 && !types[cand.typ.Name] && len(types) >= p.s.MaxTypes {
			continue
		}
		more := make([]int64, len(most))
		for i, u := range cand.use {
			more[i] = max(0, u-most[i])
		}
		spare := !types[cand.typ.Name] && len(types) >= p.s.FirstTypes
		if !pl.allows(more, size) || spare && slices.ContainsFunc(more, func(u int64) bool { return u > 0 }) {
			continue
		}
		pl.take(more, size)
		for i := range most {
			most[i] += more[i]
		}
		types[cand.typ.Name] = true
		out = append(out, cand)
	}
	out, ok := p.diverse(pl, out)
	return out, ok && len(out) > 0
}
