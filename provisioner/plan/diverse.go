// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"maps"
	"math"
	"slices"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
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
	m := newMix(pl, cands)
	for _, cand := range cands {
		if m.missing() == 0 || len(m.types) >= p.s.MaxTypes {
			break
		}
		if !m.types[cand.typ] && m.adds(cand) {
			m.choose(cand.typ)
		}
	}
	for _, cand := range cands {
		if len(m.types) >= p.s.MaxTypes {
			break
		}
		m.choose(cand.typ)
	}
	out := make([]*candidate, 0, len(cands))
	for _, cand := range cands {
		if m.types[cand.typ] {
			out = append(out, cand)
		}
	}
	return out, m.missing() == 0
}

// mix is a choice of types, with the values that they have for the keys of minValues.
type mix struct {
	pool  *pool
	cands []*candidate
	types map[*cloudprovider.InstanceType]bool
	seen  map[string]map[string]bool
}

func newMix(pl *pool, cands []*candidate) *mix {
	m := &mix{pool: pl, cands: cands, types: map[*cloudprovider.InstanceType]bool{}, seen: map[string]map[string]bool{}}
	for key := range pl.minValues {
		m.seen[key] = map[string]bool{}
	}
	return m
}

// missing is how many values are wanted still.
func (m *mix) missing() int {
	n := 0
	for key, least := range m.pool.minValues {
		n += max(0, least-len(m.seen[key]))
	}
	return n
}

func (m *mix) choose(t *cloudprovider.InstanceType) {
	if m.types[t] {
		return
	}
	m.types[t] = true
	if len(m.seen) == 0 {
		return
	}
	for _, cand := range m.cands {
		if cand.typ != t {
			continue
		}
		for key, values := range m.seen {
			if v, ok := cand.node.Labels[key]; ok {
				values[v] = true
			}
		}
	}
}

// adds says whether the candidate has a new value for a key that still needs some.
func (m *mix) adds(cand *candidate) bool {
	for key, least := range m.pool.minValues {
		if v, ok := cand.node.Labels[key]; ok && len(m.seen[key]) < least && !m.seen[key][v] {
			return true
		}
	}
	return false
}
