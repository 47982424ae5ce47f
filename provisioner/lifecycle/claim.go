// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
	"github.com/jit-scheduler/jit-scheduler/provisioner/scheduling"
)

// The annotations of ours on NodeClaims and Nodes.
const (
	GroupAnnotation   = "jit-scheduler.io/launch-group"
	OrdinalAnnotation = "jit-scheduler.io/launch-ordinal"
	SizeAnnotation    = "jit-scheduler.io/launch-size"
	AttemptAnnotation = "jit-scheduler.io/launch-attempt"
	HoldAnnotation    = "jit-scheduler.io/hold"
	// taggedAnnotation and clusterTaggedAnnotation are Karpenter's, on NodeClaims whose instance has all its tags.
	taggedAnnotation        = "karpenter.k8s.aws/tagged"
	clusterTaggedAnnotation = "compatibility.karpenter.k8s.aws/cluster-name-tagged"
	// HoldKeep as the value of HoldAnnotation turns the hold into a cordon that stays.
	HoldKeep = "keep"
)

// claim is a NodeClaim with all that is known of it. Facts are fields; what is due follows from them (reconcile).
type claim struct {
	base
	name   string
	seq    int64
	pool   string
	object *karpv1.NodeClaim
	// exists: the API server has, or had, the object; objectGone: not any more.
	exists, objectGone bool
	// restored claims were not planned by this process; until settleUntil they wait for their pods.
	restored    bool
	settleUntil time.Time
	since       time.Time
	own         own

	group   *group
	ordinal int
	attempt int
	options []cloudprovider.LaunchOption

	// planned is the node in the scheduler's cache.
	planned  *v1.Node
	daemons  v1.ResourceList
	room     v1.ResourceList // what the machine has at least, DaemonSets not subtracted
	reserved map[types.UID]*pod
	sum      v1.ResourceList // of reserved
	usage    v1.ResourceList // what it takes of its pool's limits

	providerID string
	launchedAt time.Time
	tagged     bool
	price      float64

	registered, initialized, handed           bool
	registeredAt, initializedAt, handedAt     time.Time
	warned                                    bool // that the unregistered taint is missing
	unheld                                    bool // registered without a hold, or it was given up
	held, evicted                             bool
	lastPodEvent                              time.Time
	closing                                   bool
	taintedAt                                 time.Time
	reason, message                           string // why it goes; reason != "": decided
	deleting, drained, terminated, instGone   bool
	registeredCounted, launchCounted, dropped bool
}

// ending says that the claim is on its way out and nobody waits for it.
func (c *claim) ending() bool { return c.reason != "" || c.deleting || c.objectGone }

// launched says that its machine is known.
func (c *claim) launched() bool { return c.providerID != "" }

func (s *State) newClaim(object *karpv1.NodeClaim) *claim {
	c := &claim{
		name:     object.Name,
		seq:      s.next(),
		pool:     object.Labels[karpv1.NodePoolLabelKey],
		object:   object,
		since:    s.now,
		ordinal:  annotationInt(object, OrdinalAnnotation, 0),
		attempt:  annotationInt(object, AttemptAnnotation, 1),
		reserved: map[types.UID]*pod{},
		sum:      v1.ResourceList{},
	}
	c.id = "claim/" + c.name
	s.claims[c.name] = c
	id := object.Annotations[GroupAnnotation]
	if id == "" {
		id = object.Name
	}
	s.join(id, c)
	return c
}

func annotationInt(object *karpv1.NodeClaim, key string, otherwise int) int {
	if n, err := strconv.Atoi(object.Annotations[key]); err == nil && n >= 0 {
		return n
	}
	return otherwise
}

// adopt takes up a claim that this process did not plan, wherever it stands.
func (s *State) adopt(object *karpv1.NodeClaim) *claim {
	c := s.newClaim(object)
	c.exists, c.restored = true, true
	c.settleUntil = s.now.Add(s.cfg.RestoreTime)
	st := &object.Status
	c.own.adopt(object)
	c.lastPodEvent = st.LastPodEventTime.Time
	c.tagged = object.Annotations[taggedAnnotation] == "true" && object.Annotations[clusterTaggedAnnotation] == "true"
	if at, ok := c.own.trueSince(karpv1.ConditionTypeLaunched); ok && st.ProviderID != "" {
		c.launchedAt, c.launchCounted = at, true
	}
	if st.ProviderID != "" {
		c.providerID = st.ProviderID
		s.byProvider[c.providerID] = c
		c.room = st.Allocatable
	}
	if at, ok := c.own.trueSince(karpv1.ConditionTypeRegistered); ok {
		c.registered, c.registeredAt, c.registeredCounted = true, at, true
	}
	if at, ok := c.own.trueSince(karpv1.ConditionTypeInitialized); ok {
		c.initialized, c.initializedAt, c.handed, c.handedAt = true, at, true, at
	}
	s.account(c)
	return c
}

func (s *State) onPlanned(ev Planned) {
	var activate []types.UID
	var created []*claim
	for _, g := range ev.Groups {
		for i := range g.Claims {
			n := &g.Claims[i]
			if s.claims[n.Object.Name] != nil {
				continue
			}
			c := s.newClaim(n.Object)
			c.planned, c.options, c.daemons = n.Node, n.Options, n.Daemons
			if c.daemons == nil {
				c.daemons = daemonsOf(n)
			}
			c.room = leastAllocatable(c)
			s.planned[c.name] = c
			s.emit(AddPlannedNode{Node: n.Node})
			activate = append(activate, s.reserve(c, n.Pods)...)
			s.account(c)
			created = append(created, c)
			s.counters.Created++
		}
	}
	for _, c := range created {
		s.mark(c)
	}
	for _, j := range ev.Joins {
		if c := s.claims[j.Claim]; c != nil && s.isOpen(c) {
			activate = append(activate, s.reserve(c, j.Pods)...)
			s.mark(c)
		}
	}
	if len(activate) > 0 {
		s.emit(Activate{Pods: activate})
	}
}

func daemonsOf(n *NewClaim) v1.ResourceList {
	rest := scheduling.Add(n.Object.Spec.Resources.Requests)
	for i := range n.Pods {
		rest = scheduling.Sub(rest, n.Pods[i].Requests)
	}
	for name, q := range rest {
		if q.Sign() <= 0 {
			delete(rest, name)
		}
	}
	return rest
}

// leastAllocatable is what the smallest of the options has, or what the planned node says.
func leastAllocatable(c *claim) v1.ResourceList {
	if len(c.options) == 0 {
		if c.planned != nil {
			return c.planned.Status.Allocatable
		}
		return c.object.Spec.Resources.Requests
	}
	requests := c.object.Spec.Resources.Requests
	last := c.options[0].InstanceType
	_, least := last.For(requests)
	for i := range c.options {
		if t := c.options[i].InstanceType; t != last {
			_, allocatable := t.For(requests)
			last, least = t, scheduling.Min(least, allocatable)
		}
	}
	return least
}

func (s *State) onRestore(ev Restore) {
	c := s.claims[ev.Claim]
	if c == nil || c.ending() || c.handed {
		return
	}
	if len(c.options) == 0 {
		c.options = ev.Options
	}
	if c.planned == nil && ev.Node != nil && !s.openToAll(c) {
		c.planned, c.daemons = ev.Node, ev.Daemons
		s.planned[c.name] = c
		s.emit(AddPlannedNode{Node: ev.Node})
		c.settleUntil = s.now.Add(s.cfg.RestoreTime)
	}
	if !c.launched() {
		c.room = leastAllocatable(c)
	} else if len(c.room) == 0 && c.planned != nil {
		c.room = c.planned.Status.Allocatable
	}
	s.account(c)
	s.mark(c)
}

func (s *State) onClaimSeen(object *karpv1.NodeClaim) {
	if _, ok := s.buried[object.UID]; ok {
		return
	}
	c := s.claims[object.Name]
	if c == nil {
		c = s.adopt(object)
	}
	if !c.exists {
		s.answer(CreateClaim{Object: object}.Key(), 0)
	}
	c.object, c.exists = object, true
	if object.DeletionTimestamp != nil && !c.deleting {
		c.deleting = true
		if c.reason == "" {
			c.reason = "Deleted"
		}
		s.counters.deleted(c.reason)
	}
	s.mark(c)
}

// onClaimGone: the object is gone, whoever let it go; the machine and the node are still looked after.
func (s *State) onClaimGone(name string) {
	if c := s.claims[name]; c != nil {
		c.objectGone = true
		if c.reason == "" {
			c.reason = "Deleted"
		}
		s.mark(c)
	}
}

func (s *State) onClaimRefused(ev ClaimRefused) {
	c := s.claims[ev.Name]
	if c == nil || c.exists {
		return
	}
	c.objectGone = true
	s.block(c.pool, ev.Message)
	s.giveUp(c, "NodeClaimRefused", ev.Message)
}

// reconcile does what the facts about the claim ask for.
func (c *claim) reconcile(s *State) {
	if s.drop(c) {
		return
	}
	switch {
	case c.ending():
		s.end(c)
	case !c.exists:
		if s.timedOut(c) || s.withdraw(c) {
			s.end(c)
			break
		}
		s.send(c, CreateClaim{Object: c.object}, "", s.cfg.ActionTimeout)
	case !c.launched():
		if s.timedOut(c) || s.withdraw(c) {
			s.end(c)
			break
		}
		s.patch(c)
		s.mark(c.group)
	default:
		s.advance(c)
		if c.ending() {
			s.end(c)
		}
	}
	if !c.gone {
		s.patch(c)
	}
}

// timedOut gives a claim up that was not launched in time.
func (s *State) timedOut(c *claim) bool {
	deadline := c.since.Add(s.cfg.LaunchTimeout)
	if s.now.Before(deadline) {
		s.wakeAt(c, deadline)
		return false
	}
	s.giveUp(c, "LaunchTimeout", "the machine was not launched within "+s.cfg.LaunchTimeout.String())
	return true
}

// reasonWithdrawn is not worth an event: nobody waits for the claim.
const reasonWithdrawn = "Withdrawn"

// withdraw gives a claim up that nobody wants any more, if its launch was not called yet.
func (s *State) withdraw(c *claim) bool {
	if c.group.launching(c) || s.settling(c) || s.wanted(c) {
		return false
	}
	s.giveUp(c, reasonWithdrawn, "no pod needs it any more")
	return true
}

// wanted says that pods wait for the claim, or may: it was found at start and is not restored yet (the launch timeout
// decides), or was made by hand and is wanted without pods.
func (s *State) wanted(c *claim) bool {
	return len(c.reserved) > 0 || c.restored &&
		(s.now.Before(c.settleUntil) || c.planned == nil || c.object.Annotations[GroupAnnotation] == "")
}

// settling says that a claim found at start may still get its pods back.
func (s *State) settling(c *claim) bool {
	if c.restored && s.now.Before(c.settleUntil) {
		s.wakeAt(c, c.settleUntil)
		return true
	}
	return false
}

// giveUp decides that a claim goes: its pods are planned again, for the reason that the message says.
func (s *State) giveUp(c *claim, reason, message string) {
	if c.reason == "" {
		c.reason, c.message = reason, message
		if reason != reasonWithdrawn && reason != "Empty" {
			s.emit(Publish{Claim: c.name, Node: s.nodeName(c), Type: v1.EventTypeWarning, Reason: reason, Message: message})
		}
	}
	s.evacuate(c, message)
	s.mark(c)
	s.mark(c.group)
}

// evacuate takes everybody off the claim, to be planned again, and the planned node out of the cache.
func (s *State) evacuate(c *claim, why string) {
	s.requeue(c, s.waiting(c), "", why)
	if c.planned != nil {
		s.emit(RemovePlannedNode{Name: c.planned.Name})
		c.planned = nil
		delete(s.planned, c.name)
	}
}
