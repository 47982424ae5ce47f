// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/jit-scheduler/jit-scheduler/provisioner/scheduling"
)

// Check tests the invariants that can be seen in the state; it is for tests and debug builds. The errors are joined.
func (s *State) Check() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	for _, name := range slices.Sorted(maps.Keys(s.claims)) {
		s.checkClaim(s.claims[name], bad)
	}
	for _, uid := range slices.Sorted(maps.Keys(s.pods)) {
		p := s.pods[uid]
		if p.claim != nil && p.claim.reserved[uid] != p {
			bad("pod %s: reserved on %s, which does not know it", uid, p.claim.name)
		}
		if p.claim != nil && p.bound != "" {
			bad("pod %s: bound to %s and still reserved on %s", uid, p.bound, p.claim.name)
		}
		if p.claim == nil && p.bound == "" && p.chosen == "" {
			bad("pod %s: an entry that says nothing", uid)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(s.groups)) {
		s.checkGroup(s.groups[id], bad)
	}
	for _, name := range slices.Sorted(maps.Keys(s.pools)) {
		s.checkPool(s.pools[name], bad)
	}
	for _, name := range slices.Sorted(maps.Keys(s.nodes)) {
		n := s.nodes[name]
		keepers := 0
		for _, p := range n.pods {
			keepers += count(p.keeps())
		}
		if keepers != n.keepers {
			bad("node %s: %d pods keep it, counted %d", name, keepers, n.keepers)
		}
	}
	for key, f := range s.flights {
		if f.owner.core().gone {
			bad("%s: in flight for something that is gone", key)
		}
	}
	return errors.Join(errs...)
}

func (s *State) checkClaim(c *claim, bad func(string, ...any)) {
	sum := v1.ResourceList{}
	for uid, p := range c.reserved {
		if p.claim != c || s.pods[uid] != p {
			bad("claim %s: its pod %s is elsewhere", c.name, uid)
		}
		sum = scheduling.Add(sum, p.Requests)
		if p.paired != c.handed {
			bad("claim %s: handed over %t, pod %s paired %t", c.name, c.handed, uid, p.paired)
		}
	}
	if !equal(sum, c.sum) {
		bad("claim %s: reserved %v, counted %v", c.name, sum, c.sum)
	}
	if len(c.reserved) > 0 {
		if !c.handed && !scheduling.Fits(scheduling.Add(sum, c.daemons), c.room) {
			bad("claim %s: holds %v and daemons %v, has %v", c.name, sum, c.daemons, c.room)
		}
		if c.ending() {
			bad("claim %s: %d pods wait for it and it is ending (%s)", c.name, len(c.reserved), c.reason)
		}
		if s.synced && c.index == 0 {
			bad("claim %s: %d pods wait for it without a deadline", c.name, len(c.reserved))
		}
	}
	if (c.planned != nil) != (s.planned[c.name] == c) {
		bad("claim %s: planned node %t, in the cache %t", c.name, c.planned != nil, s.planned[c.name] == c)
	}
	if c.planned != nil && (c.handed || c.ending()) {
		bad("claim %s: its planned node is in the cache after handover or end", c.name)
	}
	if c.launched() && s.byProvider[c.providerID] != c {
		bad("claim %s: %s is another claim's machine", c.name, c.providerID)
	}
	if c.gone {
		bad("claim %s: gone and still listed", c.name)
	}
}

func (s *State) checkGroup(g *group, bad func(string, ...any)) {
	for _, c := range g.members {
		if c.group != g || s.claims[c.name] != c {
			bad("group %s: member %s is gone", g.name, c.name)
		}
		if c.launched() || c.ending() || c.restored {
			continue
		}
		for attempt := 1; attempt < c.attempt; attempt++ {
			if !g.known[attempt] {
				bad("group %s: %s is at attempt %d and the outcome of %d is unknown", g.name, c.name, c.attempt, attempt)
			}
		}
	}
	if g.flying != nil && g.known[g.flying.attempt] {
		bad("group %s: attempt %d is in flight and known", g.name, g.flying.attempt)
	}
}

func (s *State) checkPool(p *pool, bad func(string, ...any)) {
	sum := v1.ResourceList{}
	for c := range p.claims {
		sum = scheduling.Add(sum, c.usage)
		if s.claims[c.name] != c {
			bad("pool %s: counts %s, which is gone", p.name, c.name)
		}
	}
	if !equal(sum, p.usage) {
		bad("pool %s: uses %v, counted %v", p.name, sum, p.usage)
	}
}

// equal compares lists; a resource that is missing is zero.
func equal(a, b v1.ResourceList) bool {
	for _, q := range scheduling.Sub(a, b) {
		if !q.IsZero() {
			return false
		}
	}
	return true
}
