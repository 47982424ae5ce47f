// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"
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
		s := shape{cand: cand.index, price: cand.price, free: cand.free, most: make([]int, len(active)),
			single: len(cand.pool.minValues) > 0}
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

// placeOneByOne places a class whose pods influence each other or others: every place is asked for right before.
func (p *planner) placeOneByOne(c *class) {
	p.ask(c)
	for len(c.rest) > 0 && c.terminal == "" {
		if p.joinOne(c) {
			continue
		}
		if c.even && p.takeReady(c) > 0 { // what was placed may have let ready nodes in again
			continue
		}
		if !p.openOne(c) {
			return
		}
	}
}

// joinOne puts the next pod on the first node that takes it.
func (p *planner) joinOne(c *class) bool {
	var names []string
	var at []*node
	for _, n := range p.nodes {
		if times(c.request, n.free) > 0 && (c.perNode == 0 || n.count(c) < c.perNode) {
			names = append(names, n.name)
			at = append(at, n)
		}
	}
	if len(names) == 0 {
		return false
	}
	for i, v := range p.f.Fit(c.Pods[0], names) {
		if v.Terminal && c.terminal == "" {
			c.terminal = v.Reason
		}
		if v.Fits && p.mayJoin(c, at[i], 1) {
			p.put(c, at[i], 1)
			return true
		}
	}
	return false
}

func (n *node) count(c *class) int {
	for _, l := range n.loads {
		if l.class == c {
			return len(l.pods)
		}
	}
	return 0
}

// openOne opens a node for the next pod, in the first tier that can, sized for those of its domain that follow.
func (p *planner) openOne(c *class) bool {
	for c.tier = 0; c.tier < len(c.tiers); c.tier++ {
		domains := p.domains(c)
		for _, d := range p.allowed(c, domains) {
			if cand := p.sizeFor(c, d, len(domains)); cand != nil {
				p.put(c, p.open(cand), 1)
				return true
			}
			if c.terminal != "" {
				return false
			}
		}
	}
	return false
}

// domain is the part of a class's candidates that its own topology terms cannot tell apart.
type domain struct {
	name  string
	cands []*candidate
}

// domains groups what may host the class in its current tier, cheapest first in each.
func (p *planner) domains(c *class) []domain {
	var out []domain
	at := map[string]int{}
	for i, v := range c.verdicts {
		cand := p.cands[i]
		if !c.possible(v) || !c.in(cand) || !cand.pool.allows(cand.use, 1) || c.diverseCap(cand) == 0 {
			continue
		}
		name := domainOf(cand, c.keys)
		if _, ok := at[name]; !ok {
			at[name] = len(out)
			out = append(out, domain{name: name})
		}
		d := &out[at[name]]
		d.cands = append(d.cands, cand)
	}
	return out
}

// allowed are the domains that take the next pod now, those with fewest pods of this plan first, then cheapest.
func (p *planner) allowed(c *class, domains []domain) []domain {
	var names []string
	var asked []int
	for i, d := range domains {
		if ok := c.domainOK[d.name]; ok == nil {
			for _, cand := range d.cands {
				names = append(names, cand.name)
				asked = append(asked, i)
			}
			continue
		}
		for _, cand := range d.cands {
			if c.domainOK[d.name][cand.index] { // one stands for those that passed together
				names = append(names, cand.name)
				asked = append(asked, i)
				break
			}
		}
	}
	if len(names) == 0 {
		return nil
	}
	fits := make([][]bool, len(domains))
	for i, v := range p.f.Fit(c.Pods[0], names) {
		if v.Terminal && c.terminal == "" {
			c.terminal = v.Reason
		}
		if !v.Fits {
			continue
		}
		if fits[asked[i]] == nil {
			fits[asked[i]] = make([]bool, len(p.cands))
		}
		fits[asked[i]][p.byName[names[i]]] = true
	}
	var out []domain
	for i, d := range domains {
		if fits[i] == nil {
			continue
		}
		if c.domainOK[d.name] == nil {
			c.domainOK[d.name] = fits[i]
		}
		ok := c.domainOK[d.name]
		d.cands = slices.DeleteFunc(d.cands, func(cand *candidate) bool { return !ok[cand.index] })
		out = append(out, d)
	}
	slices.SortStableFunc(out, func(a, b domain) int {
		if n := c.placedIn[a.name] - c.placedIn[b.name]; n != 0 {
			return n
		}
		if a.cands[0].price != b.cands[0].price {
			if a.cands[0].price < b.cands[0].price {
				return -1
			}
			return 1
		}
		return strings.Compare(a.name, b.name)
	})
	return out
}

// sizeFor chooses the machine for the pods that the domain will get in the end, and makes sure that it takes the next.
func (p *planner) sizeFor(c *class, d domain, domains int) *candidate {
	quota := len(c.rest)
	if c.even {
		total := len(c.rest)
		for _, n := range c.placedIn {
			total += n
		}
		quota = max((total+domains-1)/domains-c.placedIn[d.name], 1)
	}
	if c.perDomain > 0 {
		quota = min(quota, c.perDomain)
	}
	var items []item
	for _, cand := range d.cands {
		k := min(times(c.request, cand.free), c.diverseCap(cand))
		if c.perNode > 0 {
			k = min(k, c.perNode)
		}
		items = append(items, item{min(k, quota), cand.price, cand.index})
	}
	for len(items) > 0 {
		it := largest(items, quota, c.oneNode)
		if it.k == 0 {
			return nil
		}
		cand := p.cands[it.id]
		if v := p.f.Fit(c.Pods[0], []string{cand.name})[0]; v.Fits {
			return cand
		}
		items = slices.DeleteFunc(items, func(o item) bool { return o.id == it.id })
	}
	return nil
}

// largest is the largest machine of the cheapest cover; with oneNode the cheapest of those that hold the most.
func largest(items []item, quota int, oneNode bool) item {
	if oneNode {
		if f := front(items); len(f) > 0 {
			return f[0]
		}
		return item{}
	}
	t := newCover(items, quota)
	if t == nil {
		return item{}
	}
	return t.picks(quota)[0]
}
