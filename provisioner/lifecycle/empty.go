// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// podEventEvery is how often status.lastPodEventTime is written at most.
const podEventEvery = 10 * time.Second

// budgetEvery is how often budgets are asked again at least: their windows open without an event.
const budgetEvery = 10 * time.Second

// podEvent notes that a pod came to the node or left it.
func (s *State) podEvent(n *node) {
	c := s.claimOf(n)
	if c == nil {
		return
	}
	s.mark(c)
	if !s.synced {
		return
	}
	c.lastPodEvent = s.now
	if s.now.Sub(c.own.lastPodEvent.Time) >= podEventEvery {
		c.own.lastPodEvent = metav1.NewTime(s.now.Truncate(time.Second))
		c.own.rev++
	}
}

// emptiness removes a machine that nobody has used for consolidateAfter: closed to our pods, tainted for those of
// others, and deleted if it is still empty after that. A pod that arrives before the deletion ends it.
func (s *State) emptiness(c *claim, n *node) {
	if !s.consolidatable(c) || !s.empty(c, n) || !s.allowed(c) {
		s.stay(c, n)
		return
	}
	if !c.closing {
		c.closing = true
		s.gate(n.name, Closed)
		s.setCondition(c, karpv1.ConditionTypeDisruptionReason, metav1.ConditionTrue,
			string(karpv1.DisruptionReasonEmpty), string(karpv1.DisruptionReasonEmpty))
	}
	if !hasTaint(n.object, &karpv1.DisruptedNoScheduleTaint) {
		c.taintedAt = time.Time{}
		s.send(c, TaintNode{Node: n.name, Taint: true}, "true", s.cfg.ActionTimeout)
		return
	}
	if c.taintedAt.IsZero() {
		c.taintedAt = s.now
	}
	if at := c.taintedAt.Add(s.cfg.EmptySettle); s.now.Before(at) {
		s.wakeAt(c, at)
		return
	}
	s.giveUp(c, string(karpv1.DisruptionReasonEmpty), s.saving(c))
}

// consolidatable says that consolidateAfter has passed since the last pod came or went, and keeps the condition.
func (s *State) consolidatable(c *claim) bool {
	after, ok := s.consolidateAfter(c.pool)
	if !ok {
		c.own.clear(karpv1.ConditionTypeConsolidatable)
		return false
	}
	since := c.initializedAt
	if c.lastPodEvent.After(since) {
		since = c.lastPodEvent
	}
	if at := since.Add(after); s.now.Before(at) {
		c.own.clear(karpv1.ConditionTypeConsolidatable)
		s.wakeAt(c, at)
		return false
	}
	s.setTrue(c, karpv1.ConditionTypeConsolidatable)
	return true
}

func (s *State) consolidateAfter(name string) (time.Duration, bool) {
	p := s.pools[name]
	if p == nil || p.object == nil || p.object.Spec.Replicas != nil {
		return 0, false
	}
	after := p.object.Spec.Disruption.ConsolidateAfter.Duration
	if after == nil {
		return 0, false
	}
	return *after, true
}

// empty says that nothing keeps the machine.
func (s *State) empty(c *claim, n *node) bool {
	return n.keepers == 0 && n.chosen == 0 && len(c.reserved) == 0 && !s.settling(c) &&
		n.object.Annotations[karpv1.DoNotDisruptAnnotationKey] != "true"
}

// allowed asks the pool's budgets, unless the removal has begun.
func (s *State) allowed(c *claim) bool {
	if c.closing {
		return true
	}
	p := s.pools[c.pool]
	nodes, disrupting := 0, 0
	for other := range p.claims {
		n := s.nodeOf(other)
		if !other.initialized || other.terminated || n == nil {
			continue
		}
		nodes++
		if other.closing || other.ending() || !nodeReady(n.object) {
			disrupting++
		}
	}
	allowed := p.object.MustGetAllowedDisruptions(fixedClock{now: s.now}, nodes, karpv1.DisruptionReasonEmpty)
	if disrupting < allowed {
		return true
	}
	if !slices.Contains(p.overBudget, c) {
		p.overBudget = append(p.overBudget, c)
	}
	s.wakeAt(c, s.now.Add(budgetEvery))
	return false
}

// budgetFreed looks again at those that the budgets kept.
func (s *State) budgetFreed(name string) {
	if p := s.pools[name]; p != nil {
		for _, c := range p.overBudget {
			s.mark(c)
		}
		p.overBudget = nil
	}
}

// fixedClock tells budgets the time.
type fixedClock struct {
	clock.Clock
	now time.Time
}

// Now implements clock.Clock.
func (c fixedClock) Now() time.Time { return c.now }

// stay takes back what emptiness has begun, also what a former process did.
func (s *State) stay(c *claim, n *node) {
	c.closing, c.taintedAt = false, time.Time{}
	s.ungate(n.name, Closed)
	c.own.clear(karpv1.ConditionTypeDisruptionReason)
	taint := TaintNode{Node: n.name}
	if f := s.flights[taint.Key()]; hasTaint(n.object, &karpv1.DisruptedNoScheduleTaint) || f != nil && f.owner == entity(c) && f.want == "true" {
		s.send(c, taint, "false", s.cfg.ActionTimeout)
	}
}

// saving says what the removal of a machine saves.
func (s *State) saving(c *claim) string {
	kind, zone, capacity := c.label(v1.LabelInstanceTypeStable), c.label(v1.LabelTopologyZone), c.label(karpv1.CapacityTypeLabelKey)
	price, ok := c.price, c.price > 0
	if !ok && s.cfg.Price != nil {
		price, ok = s.cfg.Price(kind, zone, capacity)
	}
	if !ok {
		return fmt.Sprintf("empty: removing %s (%s, %s)", kind, capacity, zone)
	}
	return fmt.Sprintf("empty: removing %s (%s, %s) saves $%.4f/h", kind, capacity, zone, price)
}

func (c *claim) label(key string) string {
	if v := c.own.labels[key]; v != "" {
		return v
	}
	return c.object.Labels[key]
}
