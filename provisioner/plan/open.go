// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
)

// join puts pods of a class whose pods do not influence each other on nodes that are on their way.
func (p *planner) join(c *class) {
	var names []string
	var at []*node
	for _, n := range p.nodes {
		if times(c.request, n.free) > 0 {
			names = append(names, n.name)
			at = append(at, n)
		}
	}
	if len(names) == 0 || len(c.rest) == 0 {
		return
	}
	for i, v := range p.f.Fit(c.Pods[0], names) {
		if v.Terminal && c.terminal == "" {
			c.terminal = v.Reason
		}
		if !v.Fits || len(c.rest) == 0 {
			continue
		}
		n := min(times(c.request, at[i].free), len(c.rest))
		for n > 0 && !p.mayJoin(c, at[i], n) {
			n--
		}
		if n > 0 {
			p.put(c, at[i], n)
		}
	}
}

// mayJoin says whether a new node keeps enough options with n more pods of the class.
func (p *planner) mayJoin(c *class, n *node, count int) bool {
	if n.chosen == nil || len(n.chosen.pool.minValues) == 0 {
		return true
	}
	_, ok := p.diverse(n.chosen.pool, p.holding(n, c, count))
	return ok
}

// openTogether opens nodes for classes whose pods do not influence each other.
func (p *planner) openTogether(classes []*class) {
	for _, c := range classes {
		if len(c.rest) > 0 && c.terminal == "" {
			p.ask(c)
		}
	}
	for {
		active := slices.DeleteFunc(slices.Clone(classes), func(c *class) bool {
			return len(c.rest) == 0 || c.terminal != "" || c.tier >= len(c.tiers)
		})
		if len(active) == 0 {
			return
		}
		pr := p.problem(active)
		stuck := false
		for i, c := range active {
			if !slices.ContainsFunc(pr.shapes, func(s shape) bool { return pr.holds(&s, i) > 0 }) {
				c.tier++
				stuck = true
			}
		}
		if stuck {
			continue
		}
		if s := pr.solve(); p.within(pr, s) {
			for _, n := range s {
				p.commit(p.cands[pr.shapes[n.shape].cand], active, n.fill)
			}
			continue
		}
		for _, c := range active { // in the order of the queue: who comes first gets what the limits leave
			p.join(c)
			p.openLimited(c)
			if len(c.rest) > 0 {
				c.tier++
			}
		}
	}
}

// problem states the classes' needs over the candidates of their current tiers, each kind of machine once.
func (p *planner) problem(active []*class) *problem {
	pr := &problem{}
	for _, c := range active {
		pr.requests = append(pr.requests, c.request)
		pr.want = append(pr.want, len(c.rest))
	}
	for _, cand := range p.cands { // cheapest first
		if !cand.pool.allows(cand.use, 1) {
			continue
		}
		s := shape{
			cand: cand.index, price: cand.price, free: cand.free, most: make([]int, len(active)),
			single: len(cand.pool.minValues) > 0,
		}
		useful := false
		for i, c := range active {
			if c.in(cand) && c.verdicts[cand.index].Fits {
				s.most[i] = min(len(c.rest), c.diverseCap(cand))
				useful = useful || pr.holds(&s, i) > 0
			}
		}
		if useful && !slices.ContainsFunc(pr.shapes, func(o shape) bool { return o.beats(&s) }) {
			pr.shapes = append(pr.shapes, s)
		}
	}
	return pr
}

// beats says whether o, not dearer than s, holds all that s holds.
func (o *shape) beats(s *shape) bool {
	if o.price > s.price || o.single && !s.single {
		return false
	}
	for r, f := range s.free {
		if o.free[r] < f {
			return false
		}
	}
	for c, m := range s.most {
		if o.most[c] < m {
			return false
		}
	}
	return true
}

// within says whether the solution keeps all limits.
func (p *planner) within(pr *problem, s []packed) bool {
	total := map[*pool][]int64{}
	for _, n := range s {
		cand := p.cands[pr.shapes[n.shape].cand]
		sum := total[cand.pool]
		if sum == nil {
			sum = make([]int64, len(cand.use))
			total[cand.pool] = sum
		}
		for i, u := range cand.use {
			sum[i] += u
		}
	}
	for pl, sum := range total {
		if !pl.allows(sum, 1) {
			return false
		}
	}
	return true
}

// commit opens a node as this candidate and fills it.
func (p *planner) commit(cand *candidate, classes []*class, fill []int) {
	var n *node
	for i, k := range fill {
		if k == 0 {
			continue
		}
		if n == nil {
			n = p.open(cand)
		}
		p.put(classes[i], n, k)
	}
}

// open makes the candidate a node of this plan.
func (p *planner) open(cand *candidate) *node {
	n := &node{name: fmt.Sprintf("%s#%d", cand.pool.name, cand.pool.opened), free: slices.Clone(cand.free), chosen: cand}
	cand.pool.opened++
	cand.pool.take(cand.use, 1)
	p.f.Open(cand.name, n.name)
	p.nodes = append(p.nodes, n)
	return n
}
