// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	v1 "k8s.io/api/core/v1"

	"github.com/jit-scheduler/jit-scheduler/provisioner/scheduling"
)

// holding says that the node carries our hold.
func holding(n *v1.Node) bool {
	_, ok := n.Annotations[HoldAnnotation]
	return ok
}

// watchHold ends the hold when nobody is left to wait for, when a person uncordoned the node, or when a person wants
// the cordon to stay.
func (s *State) watchHold(c *claim, n *node) {
	value, ok := n.object.Annotations[HoldAnnotation]
	c.held = ok
	switch {
	case !ok:
		s.ungate(n.name, Released)
	case value == HoldKeep || c.evicted:
		s.ungate(n.name, Released)
		s.evacuate(c, "the node "+n.name+" is cordoned")
		c.handed = true
		s.send(c, ReleaseHold{Node: n.name, Keep: true}, HoldKeep, s.cfg.ActionTimeout)
	case !n.object.Spec.Unschedulable, len(c.reserved) == 0 && (c.handed || !s.settling(c)):
		c.unheld = true
		if s.gates[n.name] != Closed {
			s.gate(n.name, Released)
		}
		s.send(c, ReleaseHold{Node: n.name}, "", s.cfg.ActionTimeout)
	}
}

// onEvicted: somebody drains a node; if it is held, the person's cordon was invisible and the hold is kept for them.
func (s *State) onEvicted(n *node) {
	c := s.claimOf(n)
	if c == nil || n.object == nil || !holding(n.object) || c.ending() {
		return
	}
	c.evicted = true
	s.mark(c)
}

// handOver pairs the waiting pods with the ready node, as many as it really has room for, and lets go of the planned
// node.
func (s *State) handOver(c *claim, n *node) {
	if c.handed {
		return
	}
	c.handed, c.handedAt = true, s.now
	pods := s.waiting(c)
	if n.object.Spec.Unschedulable && !holding(n.object) {
		s.requeue(c, pods, "", "the node "+n.name+" is cordoned")
		pods = nil
	}
	taken := scheduling.Max(c.daemons, bound(n))
	var paired, rest []*pod
	for _, p := range pods {
		sum := scheduling.Add(taken, p.Requests)
		if scheduling.Fits(sum, n.object.Status.Allocatable) {
			paired, taken = append(paired, p), sum
		} else {
			rest = append(rest, p)
		}
	}
	s.counters.HandedOver += len(paired)
	s.requeue(c, paired, n.name, "")
	s.requeue(c, rest, "", "the node "+n.name+" is smaller than planned")
	if c.planned != nil {
		s.emit(RemovePlannedNode{Name: c.planned.Name})
		c.planned = nil
		delete(s.planned, c.name)
	}
	c.room = n.object.Status.Allocatable
	s.watchHold(c, n)
}

// bound sums what runs on the node already.
func bound(n *node) v1.ResourceList {
	sum := v1.ResourceList{}
	for _, p := range n.pods {
		if !p.terminal {
			sum = scheduling.Add(sum, p.Requests)
		}
	}
	return sum
}
