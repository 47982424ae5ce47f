// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"
)

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
			if cand := p.sizeFor(c, d, domains); cand != nil {
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
func (p *planner) sizeFor(c *class, d domain, domains []domain) *candidate {
	quota := len(c.rest)
	if c.even {
		total := len(c.rest)
		for _, n := range c.placedIn {
			total += n
		}
		quota = max((total+len(domains)-1)/len(domains)-c.placedIn[d.name], 1)
		d.cands = c.fairShare(d, domains)
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

// fairShare are the candidates of the domain that leave enough of the limits for as large a machine in each of the
// domains that wait for one as well; the smallest if none does.
func (c *class) fairShare(d domain, domains []domain) []*candidate {
	waiting := int64(0)
	for _, o := range domains {
		if c.placedIn[o.name] <= c.placedIn[d.name] {
			waiting++
		}
	}
	out := slices.DeleteFunc(slices.Clone(d.cands), func(cand *candidate) bool { return !cand.pool.allows(cand.use, waiting) })
	if len(out) > 0 {
		return out
	}
	least := slices.MinFunc(d.cands, func(a, b *candidate) int { return slices.Compare(a.use, b.use) })
	return []*candidate{least}
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
