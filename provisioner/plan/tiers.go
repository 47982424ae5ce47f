// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/jit-scheduler/jit-scheduler/provisioner/scheduling"
)

// tier is a set of equally good candidates: those of some pools, all of them or only the preferred ones.
type tier struct {
	pools     []*pool
	preferred bool
}

// rank orders what can host the class: pools whose soft taints it tolerates, then what its preferred node affinity
// asks for, then by weight. Preferences order, they never exclude.
func (p *planner) rank(c *class) {
	c.tiers, c.tier = nil, 0
	c.preference = p.preferenceOf(c)
	possible, preferred := map[*pool]bool{}, map[*pool]bool{}
	for i, v := range c.verdicts {
		if cand := p.cands[i]; c.possible(v) && c.diverseCap(cand) > 0 {
			possible[cand.pool] = true
			preferred[cand.pool] = preferred[cand.pool] || c.preference != nil && c.prefers(cand)
		}
	}
	for _, soft := range []bool{true, false} {
		c.addTiers(p.pools, true, func(pl *pool) bool { _, ok := pl.tolerated(c.Pods[0]); return ok == soft && preferred[pl] })
		c.addTiers(p.pools, false, func(pl *pool) bool { _, ok := pl.tolerated(c.Pods[0]); return ok == soft && possible[pl] })
	}
}

// addTiers adds the pools that take part, one tier for each weight.
func (c *class) addTiers(pools []*pool, preferred bool, takesPart func(*pool) bool) {
	first := true
	var weight int32
	for _, pl := range pools {
		if !takesPart(pl) {
			continue
		}
		if first || pl.weight != weight {
			c.tiers = append(c.tiers, tier{preferred: preferred})
		}
		last := &c.tiers[len(c.tiers)-1]
		last.pools = append(last.pools, pl)
		first, weight = false, pl.weight
	}
}

// preferenceOf is the heaviest preferred node affinity term that can be had; lighter ones are not looked at.
func (p *planner) preferenceOf(c *class) scheduling.Requirements {
	a := c.Pods[0].Spec.Affinity
	if a == nil || a.NodeAffinity == nil {
		return nil
	}
	terms := slices.Clone(a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	slices.SortStableFunc(terms, func(a, b v1.PreferredSchedulingTerm) int { return cmp.Compare(b.Weight, a.Weight) })
	for _, t := range terms {
		want := scheduling.FromTerm(t.Preference)
		for i, v := range c.verdicts {
			if len(want) > 0 && c.possible(v) && want.Matches(p.cands[i].node.Labels) {
				return want
			}
		}
	}
	return nil
}

func (c *class) prefers(cand *candidate) bool {
	return c.preference == nil || c.preference.Matches(cand.node.Labels)
}

// possible says whether a candidate with this verdict can come to fit while the plan grows: what other pods' places
// forbid now may be allowed later.
func (c *class) possible(v Verdict) bool {
	return v.Fits || !c.Independent && (v.Plugin == "PodTopologySpread" || v.Plugin == "InterPodAffinity")
}

// in says whether the candidate is in the class's current tier.
func (c *class) in(cand *candidate) bool {
	if c.tier >= len(c.tiers) {
		return false
	}
	t := c.tiers[c.tier]
	return slices.Contains(t.pools, cand.pool) && (!t.preferred || c.prefers(cand))
}
