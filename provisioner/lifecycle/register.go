// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// node is a Node, or the name of one that pods are bound to.
type node struct {
	base
	name   string
	object *v1.Node
	pods   map[types.UID]*pod
	// keepers of pods keep the machine; chosen pods are being bound to it.
	keepers, chosen int
	orphanSince     time.Time
}

func (s *State) nodeAt(name string) *node {
	n := s.nodes[name]
	if n == nil {
		n = &node{name: name, pods: map[types.UID]*pod{}}
		n.id = "node/" + name
		s.nodes[name] = n
	}
	return n
}

// nodeOf is the claim's real node, nil while there is none.
func (s *State) nodeOf(c *claim) *node {
	if c.providerID == "" {
		return nil
	}
	return s.nodeByProvider[c.providerID]
}

func (s *State) nodeName(c *claim) string {
	if n := s.nodeOf(c); n != nil {
		return n.name
	}
	return ""
}

func (s *State) claimOf(n *node) *claim {
	if n.object == nil {
		return nil
	}
	return s.byProvider[n.object.Spec.ProviderID]
}

func (s *State) markNode(n *node) {
	if c := s.claimOf(n); c != nil {
		s.mark(c)
	}
}

func (s *State) forgetNode(n *node) {
	if n.object == nil && len(n.pods) == 0 && n.chosen == 0 {
		s.forget(n)
		delete(s.nodes, n.name)
	}
}

func (s *State) onNodeSeen(object *v1.Node) {
	n := s.nodeAt(object.Name)
	if n.object != nil && n.object.Spec.ProviderID != object.Spec.ProviderID {
		s.detach(n)
	}
	n.object = object
	if id := object.Spec.ProviderID; id != "" && s.nodeByProvider[id] == nil {
		s.nodeByProvider[id] = n
	}
	if s.synced {
		s.adoptOrphan(n)
	}
	s.markNode(n)
	if s.claimOf(n) == nil && ours(object) {
		s.mark(n)
	}
}

func (s *State) detach(n *node) {
	if n.object != nil && s.nodeByProvider[n.object.Spec.ProviderID] == n {
		delete(s.nodeByProvider, n.object.Spec.ProviderID)
	}
}

func (s *State) onNodeGone(name string) {
	n := s.nodes[name]
	if n == nil || n.object == nil {
		return
	}
	c := s.claimOf(n)
	s.detach(n)
	n.object = nil
	s.forgetNode(n)
	s.ungate(name, s.gates[name])
	if c == nil {
		return
	}
	if !c.ending() {
		s.giveUp(c, "NodeGone", "the node "+name+" was deleted")
	}
	s.mark(c)
}

func (s *State) onInstanceGone(providerID string) {
	if x := s.surplus[providerID]; x != nil {
		s.forget(x)
		delete(s.surplus, providerID)
	}
	prune(s.ended, s.now)
	s.ended[providerID] = s.now
	if n := s.nodeByProvider[providerID]; n != nil {
		s.mark(n)
	}
	c := s.byProvider[providerID]
	if c == nil {
		return
	}
	c.instGone = true
	if !c.ending() {
		s.giveUp(c, "InstanceGone", "the machine "+providerID+" is gone")
	}
	s.mark(c)
}

// registered says that the Node carries all that RegisterNode writes.
func registered(n *v1.Node) bool {
	return n.Labels[karpv1.NodeRegisteredLabelKey] == "true" && !hasTaint(n, &karpv1.UnregisteredNoExecuteTaint)
}

func hasTaint(n *v1.Node, t *v1.Taint) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(have v1.Taint) bool { return have.MatchTaint(t) })
}

// advance takes a launched claim from its machine to its node, and from there to the pods.
func (s *State) advance(c *claim) {
	n := s.nodeOf(c)
	switch {
	case n == nil && c.registered:
		s.giveUp(c, "NodeGone", "the node of "+c.name+" is gone")
	case n == nil || !registered(n.object):
		deadline := c.launchedAt.Add(s.cfg.RegistrationTimeout)
		if !s.now.Before(deadline) {
			s.giveUp(c, "RegistrationTimeout", "the machine did not register within "+s.cfg.RegistrationTimeout.String())
			return
		}
		s.wakeAt(c, deadline)
		if n != nil && n.object.DeletionTimestamp == nil {
			s.register(c, n)
		}
	case n.object.DeletionTimestamp != nil:
		s.giveUp(c, "NodeDeleted", "the node "+n.name+" is being deleted")
	default:
		s.serve(c, n)
	}
}

// register has the node take what the claim says, with the hold in the same patch if pods wait for it, or may be
// planned onto it again after a restart. A cordon that is there already is somebody's: no hold then.
func (s *State) register(c *claim, n *node) {
	hold := (len(c.reserved) > 0 || s.settling(c)) && !n.object.Spec.Unschedulable
	c.unheld = !hold
	a := RegisterNode{Node: n.name, Claim: c.own.overlay(c.object), Hold: hold}
	if hold {
		a.HoldUntil = s.now.Add(s.cfg.HoldTimeout).Unix()
	}
	s.send(c, a, "", s.cfg.ActionTimeout)
	if !c.warned && !hasTaint(n.object, &karpv1.UnregisteredNoExecuteTaint) {
		c.warned = true
		s.emit(Publish{
			Claim: c.name, Node: n.name, Type: v1.EventTypeWarning, Reason: "UnregisteredTaintMissing",
			Message: "the node joined without the taint karpenter.sh/unregistered: pods may have been placed on it too early",
		})
	}
}

// openToAll says that the node takes everybody, or soon will: the claim takes no more pods.
func (s *State) openToAll(c *claim) bool {
	n := s.nodeOf(c)
	return c.unheld || n != nil && registered(n.object) && !holding(n.object)
}

// serve is the life of a registered node.
func (s *State) serve(c *claim, n *node) {
	if !c.registered || c.own.nodeName == "" {
		s.welcome(c, n)
	}
	if !c.tagged {
		s.send(c, TagInstance{Claim: c.name, ProviderID: c.providerID, Node: n.name}, "", s.cfg.ActionTimeout)
	}
	s.shareDomain(c, n)
	s.watchHold(c, n)
	if !c.initialized {
		if why := notInitialized(n.object, c, ephemeral); why != "" {
			s.setCondition(c, karpv1.ConditionTypeInitialized, metav1.ConditionUnknown, why, "")
			s.serveEarly(c, n, why)
			return
		}
		c.initialized, c.initializedAt = true, s.now
		s.counters.Initialized++
		s.setTrue(c, karpv1.ConditionTypeInitialized)
	}
	if n.object.Labels[karpv1.NodeInitializedLabelKey] != "true" {
		s.send(c, InitializeNode{Node: n.name}, "", s.cfg.ActionTimeout)
	}
	if !c.handed && len(c.reserved) == 0 && c.held && s.settling(c) {
		return
	}
	s.handOver(c, n)
	s.patience(c, c.handedAt.Add(s.cfg.PairTimeout), notBoundTo(n))
	s.emptiness(c, n)
}

// serveEarly waits for a node that is not initialized, or hands it over before that: the node lifecycle controller takes
// not-ready:NoExecute off up to five seconds after the node is Ready, and pods that tolerate it, as nearly all do, are
// bound meanwhile by any scheduler.
func (s *State) serveEarly(c *claim, n *node, why string) {
	if !c.handed && len(c.reserved) > 0 && notInitialized(n.object, c, blocking) == "" &&
		!slices.ContainsFunc(s.waiting(c), func(p *pod) bool { return !p.ToleratesNotReady }) {
		s.handOver(c, n)
	}
	deadline, message := c.registeredAt.Add(s.cfg.HoldTimeout), "the node "+n.name+" is not ready: "+why
	if c.handed {
		deadline, message = c.handedAt.Add(s.cfg.PairTimeout), notBoundTo(n)
	}
	s.patience(c, deadline, message)
}

func notBoundTo(n *node) string { return "the pod was not bound to " + n.name + " in time" }

// welcome notes the registration.
func (s *State) welcome(c *claim, n *node) {
	if !c.registered {
		c.registered, c.registeredAt = true, s.now
	}
	if !c.registeredCounted {
		c.registeredCounted = true
		s.counters.Registered++
	}
	s.setTrue(c, karpv1.ConditionTypeRegistered)
	c.own.nodeName = n.name
	c.own.providerID = c.providerID
	c.own.rev++
}

// shareDomain gives the planned node the hostname label of the real one, so that both are one domain, and its size.
func (s *State) shareDomain(c *claim, n *node) {
	host := n.object.Labels[v1.LabelHostname]
	if c.planned == nil || host == "" || c.planned.Labels[v1.LabelHostname] == host {
		return
	}
	node := c.planned.DeepCopy()
	if node.Labels == nil {
		node.Labels = map[string]string{}
	}
	node.Labels[v1.LabelHostname] = host
	node.Status.Allocatable = realAllocatable(node.Status.Allocatable, n.object)
	c.room = node.Status.Allocatable
	s.replan(c, node)
	s.refit(c, "the node "+n.name+" is smaller than planned")
}

// realAllocatable is what the node reports; what it does not report yet (a device plugin's) is as planned.
func realAllocatable(planned v1.ResourceList, n *v1.Node) v1.ResourceList {
	out := v1.ResourceList{}
	maps.Copy(out, planned)
	for name, q := range n.Status.Allocatable {
		if !q.IsZero() {
			out[name] = q
		}
	}
	return out
}

// notInitialized is the reason of the Initialized condition, "" if nothing is missing; hinders says which taints count.
func notInitialized(n *v1.Node, c *claim, hinders func(*v1.Taint) bool) string {
	if !nodeReady(n) {
		return "NodeNotReady"
	}
	for i := range c.object.Spec.StartupTaints {
		if hasTaint(n, &c.object.Spec.StartupTaints[i]) {
			return "StartupTaintsExist"
		}
	}
	for i := range n.Spec.Taints {
		if t := &n.Spec.Taints[i]; hinders(t) {
			return "KnownEphemeralTaintsExist"
		}
	}
	for name, q := range c.object.Spec.Resources.Requests {
		if have := n.Status.Allocatable[name]; !q.IsZero() && have.IsZero() {
			return "ResourceNotRegistered"
		}
	}
	return ""
}

// ephemeral taints go away by themselves while a node starts.
func ephemeral(t *v1.Taint) bool {
	switch t.Key {
	case v1.TaintNodeUnschedulable:
		return false // the hold, or a person's cordon
	case "node.cloudprovider.kubernetes.io/uninitialized":
		return true
	}
	return strings.HasPrefix(t.Key, "node.kubernetes.io/") || strings.HasPrefix(t.Key, "readiness.k8s.io/")
}

// blocking are the ephemeral taints that keep pods off a node that is Ready.
func blocking(t *v1.Taint) bool {
	return ephemeral(t) && (t.Key != v1.TaintNodeNotReady || t.Effect != v1.TaintEffectNoExecute)
}

// patience un-plans pods that have waited for a node for too long.
func (s *State) patience(c *claim, deadline time.Time, why string) {
	if len(c.reserved) == 0 {
		return
	}
	if s.now.Before(deadline) {
		s.wakeAt(c, deadline)
		return
	}
	s.evacuate(c, why)
	if n := s.nodeOf(c); n != nil {
		s.watchHold(c, n)
	}
}
