// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// end takes a claim off the cluster: pods, object, node, machine, and the finalizers last.
func (s *State) end(c *claim) {
	why := c.message
	if why == "" {
		why = "the NodeClaim " + c.name + " is being deleted"
	}
	s.evacuate(c, why)
	n := s.nodeOf(c)
	if n != nil {
		s.gate(n.name, Closed)
	}
	if !c.deleting && !c.objectGone {
		s.deleteClaim(c)
		return
	}
	if c.group.launching(c) {
		s.mark(c.group) // there may be a machine: its answer comes first
		return
	}
	s.graceAnnotation(c)
	if n != nil && registered(n.object) && !c.instGone && !c.drained {
		s.drain(c, n)
		return
	}
	if c.launched() && !c.instGone {
		if !c.terminated {
			s.send(c, Terminate{ProviderID: c.providerID, Claim: c.name}, "", s.cfg.ActionTimeout)
			return
		}
		s.send(c, AwaitTermination{ProviderID: c.providerID, Claim: c.name}, "", s.cfg.ActionTimeout)
		return
	}
	if n != nil {
		if n.object.DeletionTimestamp == nil {
			s.send(c, DeleteNode{Node: n.name, UID: n.object.UID}, "", s.cfg.ActionTimeout)
		}
		if slices.Contains(n.object.Finalizers, karpv1.TerminationFinalizer) {
			s.send(c, RemoveNodeFinalizer{Node: n.name, UID: n.object.UID}, "", s.cfg.ActionTimeout)
		}
		return
	}
	if !c.objectGone && slices.Contains(c.object.Finalizers, karpv1.TerminationFinalizer) {
		s.send(c, RemoveClaimFinalizer{Name: c.name, UID: c.object.UID}, "", s.cfg.ActionTimeout)
	}
}

// deleteClaim deletes the object, but not while its creation may still arrive.
func (s *State) deleteClaim(c *claim) {
	if create := (CreateClaim{Object: c.object}).Key(); !c.exists && s.pending(create) {
		s.wakeAt(c, s.flights[create].until)
		return
	}
	a := DeleteClaim{Name: c.name, Reason: c.reason, Message: c.message}
	if c.exists {
		a.UID = c.object.UID
	}
	s.send(c, a, "", s.cfg.ActionTimeout)
}

// graceAnnotation notes the time by which the drain must be over.
func (s *State) graceAnnotation(c *claim) {
	grace := c.object.Spec.TerminationGracePeriod
	if grace == nil || c.object.DeletionTimestamp == nil ||
		c.object.Annotations[karpv1.NodeClaimTerminationTimestampAnnotationKey] != "" {
		return
	}
	c.own.annotate(karpv1.NodeClaimTerminationTimestampAnnotationKey,
		c.object.DeletionTimestamp.Add(grace.Duration).UTC().Format(time.RFC3339))
}

// drainDeadline is the unix time by which the drain must be over, 0: none.
func (c *claim) drainDeadline() int64 {
	for _, value := range []string{
		c.object.Annotations[karpv1.NodeClaimTerminationTimestampAnnotationKey],
		c.own.annotations[karpv1.NodeClaimTerminationTimestampAnnotationKey],
	} {
		if at, err := time.Parse(time.RFC3339, value); err == nil {
			return at.Unix()
		}
	}
	return 0
}

// drain keeps pods off the node, deletes its object (the finalizer keeps it) and evicts what is left.
func (s *State) drain(c *claim, n *node) {
	tainted := hasTaint(n.object, &karpv1.DisruptedNoScheduleTaint)
	if !tainted {
		s.send(c, TaintNode{Node: n.name, Taint: true}, "true", s.cfg.ActionTimeout)
	}
	if n.object.DeletionTimestamp == nil {
		s.send(c, DeleteNode{Node: n.name, UID: n.object.UID}, "", s.cfg.ActionTimeout)
		return
	}
	if !tainted {
		return
	}
	s.setCondition(c, karpv1.ConditionTypeDrained, metav1.ConditionUnknown, "Draining", "")
	s.send(c, Drain{Node: n.name, Deadline: c.drainDeadline()}, "", s.cfg.ActionTimeout)
}

func (s *State) onDrained(ev Drained) {
	s.answer(Drain{Node: ev.Node}.Key(), s.cfg.PollEvery)
	n := s.nodes[ev.Node]
	if n == nil || ev.Remaining > 0 {
		return
	}
	if c := s.claimOf(n); c != nil && c.ending() {
		c.drained = true
		s.setTrue(c, karpv1.ConditionTypeDrained)
		s.mark(c)
	}
}

// onTerminating: the cloud has taken the request to end an instance.
func (s *State) onTerminating(a Terminate) {
	if x := s.surplus[a.ProviderID]; x != nil {
		s.forget(x)
		delete(s.surplus, a.ProviderID)
	}
	if c := s.byProvider[a.ProviderID]; c != nil {
		c.terminated = true
		s.budgetFreed(c.pool)
		s.setTrue(c, karpv1.ConditionTypeInstanceTerminating)
		s.mark(c)
	}
}

// drop forgets a claim of which nothing is left. It tells whether it did.
func (s *State) drop(c *claim) bool {
	n := s.nodeOf(c)
	if !c.objectGone || n != nil || c.launched() && !c.instGone || c.group.launching(c) {
		return false
	}
	s.evacuate(c, "the NodeClaim "+c.name+" is gone")
	if c.object.UID != "" {
		prune(s.buried, s.now)
		s.buried[c.object.UID] = s.now
	}
	s.forget(c)
	s.leaveGroup(c)
	delete(s.claims, c.name)
	if s.byProvider[c.providerID] == c {
		delete(s.byProvider, c.providerID)
	}
	c.dropped = true
	s.budgetFreed(c.pool)
	s.account(c)
	return true
}
