// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"maps"
	"math"
	"slices"
)

// diversity names candidates whose node could be any other of the group: the options of one NodeClaim.
type diversity struct {
	pool    *pool
	variant int
	domain  string
}

func (c *class) diversityOf(cand *candidate) diversity {
	return diversity{cand.pool, cand.variant, domainOf(cand, c.pins)}
}

// diverseCap is how many pods of the class the candidate may hold so that the pool's minValues are still met by the
// machines that could hold them instead.
func (c *class) diverseCap(cand *candidate) int {
	if len(cand.pool.minValues) == 0 {
		return math.MaxInt32
	}
	return c.caps[c.diversityOf(cand)]
}

func (p *planner) capDiversity(c *class) {
	c.caps = map[diversity]int{}
	groups := map[diversity][]*candidate{}
	for i, v := range c.verdicts {
		if cand := p.cands[i]; c.possible(v) && len(cand.pool.minValues) > 0 {
			d := c.diversityOf(cand)
			groups[d] = append(groups[d], cand)
		}
	}
	for d, cands := range groups {
		sizes := map[int]bool{}
		for _, cand := range cands {
			sizes[times(c.request, cand.free)] = true
		}
		for _, k := range slices.Backward(slices.Sorted(maps.Keys(sizes))) {
			enough := slices.DeleteFunc(slices.Clone(cands), func(cand *candidate) bool { return times(c.request, cand.free) < k })
			if _, ok := p.diverse(d.pool, enough); ok {
				c.caps[d] = k
				break
			}
		}
	}
}

// diverse cuts candidates (cheapest first) to MaxTypes instance types, cheapest first but for those that minValues
// needs, and says whether minValues are met.
func (p *planner) diverse(pl *pool, cands []*candidate) ([]*candidate, bool) {
	seen := map[string]map[string]bool{}
	for key := range pl.minValues {
		seen[key] = map[string]bool{}
	}
	missing := func() int {
		n := 0
		for key, least := range pl.minValues {
			n += max(0, least-len(seen[key]))
		}
		return n
	}
	chosen := map[string]bool{}
	choose := func(name string) {
		chosen[name] = true
		for _, cand := range cands {
			if cand.typ.Name == name {
				for key := range seen {
					if v, ok := cand.node.Labels[key]; ok {
						seen[key][v] = true
					}
				}
			}
		}
	}
	for _, cand := range cands {
		if missing() == 0 || len(chosen) >= p.s.MaxTypes {
			break
		}
		if !chosen[cand.typ.Name] && adds(pl, seen, cand) {
			choose(cand.typ.Name)
		}
	}
	for _, cand := range cands {
		if len(chosen) >= p.s.MaxTypes {
			break
		}
		if !chosen[cand.typ.Name] {
			choose(cand.typ.Name)
		}
	}
	ok := missing() == 0
	return slices.DeleteFunc(slices.Clone(cands), func(cand *candidate) bool { return !chosen[cand.typ.Name] }), ok
}

// adds says whether the candidate has a new value for a key that still needs some.
func adds(pl *pool, seen map[string]map[string]bool, cand *candidate) bool {
	for key, least := range pl.minValues {
		if v, ok := cand.node.Labels[key]; ok && len(seen[key]) < least && !seen[key][v] {
			return true
		}
	}
	return false
}
