// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
)

// patience is what a group remembers between its attempts.
type patience struct {
	// notBefore is when the next attempt may begin.
	notBefore time.Time
	// retries are attempts that failed for reasons that are no offering's; free of them cost nothing of MaxAttempts.
	retries, free int
	// refusedSince is when the cloud first refused what the class asks for.
	refusedSince time.Time
	// told is what people were told last, so that they are told once.
	told string
}

// judge applies a failure to the claims of an attempt that have no machine.
func (s *State) judge(g *group, l *launch, ev LaunchFailed) {
	switch ev.Failure {
	case cloudprovider.InsufficientCapacity:
		if len(ev.Failures) == 0 {
			s.again(g, l, nil, ev.Message)
			return
		}
		s.shorten(g, l, ev.Failures)
	case cloudprovider.Throttled:
		s.excuse(l, ev)
		s.pause(g)
		g.free++
		s.shorten(g, l, ev.Failures)
	case cloudprovider.NodeClassNotReady:
		s.refused(g, l, ev)
	case cloudprovider.Rejected, cloudprovider.Unknown, cloudprovider.TokenMismatch:
		g.told = ev.Message // giving up tells
		s.tell(l, metav1.ConditionFalse, ev)
		for _, c := range s.unlaunched(l) {
			s.block(c.pool, ev.Message)
			s.giveUp(c, string(ev.Failure), cut(ev.Message))
		}
	}
}

// refused has the launch tried again for a while: as long as it is short the pods keep their places, and the reason
// stands on the claim.
func (s *State) refused(g *group, l *launch, ev LaunchFailed) {
	left := s.unlaunched(l)
	if len(left) == 0 {
		return
	}
	s.block(left[0].pool, ev.Message)
	s.tell(l, metav1.ConditionFalse, ev)
	if g.refusedSince.IsZero() {
		g.refusedSince = s.now
	}
	s.pause(g)
	if g.notBefore.After(g.refusedSince.Add(s.cfg.RefusedFor)) {
		for _, c := range left {
			s.giveUp(c, cmp.Or(ev.Reason, string(ev.Failure)), cut(ev.Message))
		}
		return
	}
	g.free++
	s.again(g, l, l.options, ev.Message)
}

// pause puts the next attempt of the group off, longer each time.
func (s *State) pause(g *group) {
	d := s.cfg.RetryMin
	for range min(g.retries, 16) {
		d = min(2*d, s.cfg.BackoffMax)
	}
	g.retries++
	g.notBefore = s.now.Add(d)
}

func (s *State) unlaunched(l *launch) []*claim {
	return slices.DeleteFunc(slices.Clone(l.claims), func(c *claim) bool { return c.ending() || c.launched() })
}

// excuse notes that the cloud did not look at a launch: its time does not count.
func (s *State) excuse(l *launch, ev LaunchFailed) {
	for _, c := range s.unlaunched(l) {
		c.since = s.now
	}
	s.tell(l, metav1.ConditionUnknown, ev)
}

// tell writes on the claims why they have no machine yet. What waiting does not cure is told in events too, once.
func (s *State) tell(l *launch, value metav1.ConditionStatus, ev LaunchFailed) {
	reason := ev.Reason
	if reason == "" {
		reason = "LaunchFailed"
		if value == metav1.ConditionFalse {
			reason = string(ev.Failure)
		}
	}
	for _, c := range s.unlaunched(l) {
		s.setCondition(c, karpv1.ConditionTypeLaunched, value, reason, cut(ev.Message))
		s.patch(c)
		s.mark(c)
		if value == metav1.ConditionFalse && c.group.told != ev.Message {
			s.emit(Publish{Claim: c.name, Type: v1.EventTypeWarning, Reason: reason, Message: cut(ev.Message), Pods: s.Reserved(c.name)})
		}
	}
	if value == metav1.ConditionFalse && len(l.claims) > 0 {
		l.claims[0].group.told = ev.Message
	}
}

// shorten takes failed offerings off the options and launches again what has no machine.
func (s *State) shorten(g *group, l *launch, failures []cloudprovider.OfferingFailure) {
	failed := map[[3]string]bool{}
	for _, f := range failures {
		if !f.Passing {
			failed[[3]string{f.InstanceType, f.Zone, f.CapacityType}] = true
		}
	}
	var rest []cloudprovider.LaunchOption
	for _, o := range l.options {
		if !failed[[3]string{o.InstanceType.Name, o.Offering.Zone, o.Offering.CapacityType}] {
			rest = append(rest, o)
		}
	}
	s.again(g, l, rest, summary(failures))
}

// summary counts failures by code, most frequent first, with an example each.
func summary(failures []cloudprovider.OfferingFailure) string {
	counts, first := map[string]int{}, map[string]*cloudprovider.OfferingFailure{}
	for i := range failures {
		f := &failures[i]
		if counts[f.Code]++; first[f.Code] == nil {
			first[f.Code] = f
		}
	}
	codes := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(counts[b]-counts[a], strings.Compare(a, b))
	})
	var parts []string
	for _, code := range codes {
		f := first[code]
		parts = append(parts, fmt.Sprintf("%d × %s (%s in %s, %s: %s)", counts[code], code, f.InstanceType, f.Zone, f.CapacityType, f.Message))
	}
	return strings.Join(parts, "; ")
}

// again gives the claims of an attempt that have no machine a new one over the options, or gives them up: their pods
// are planned again only when nothing of the list is left.
func (s *State) again(g *group, l *launch, options []cloudprovider.LaunchOption, why string) {
	left := s.unlaunched(l)
	if len(left) == 0 {
		return
	}
	short := cloudprovider.Short(options, MinValues(left[0].object))
	if len(options) == 0 || g.last-g.free >= s.cfg.MaxAttempts || short != "" {
		message := "no capacity in any offering that could hold the pods"
		if short != "" && len(options) > 0 {
			message = "what has capacity does not meet minValues: " + short
		}
		if why != "" {
			message += ": " + why
		}
		for _, c := range left {
			s.giveUp(c, string(cloudprovider.InsufficientCapacity), cut(message))
		}
		return
	}
	g.last++
	fewer := len(options) < len(l.options)
	for _, c := range left {
		c.attempt, c.options = g.last, options
		c.own.annotate(AttemptAnnotation, strconv.Itoa(g.last))
		c.own.annotate(SizeAnnotation, strconv.Itoa(len(left)))
		c.room = leastAllocatable(c)
		s.account(c)
		s.mark(c)
		if fewer {
			s.emit(Publish{Claim: c.name, Type: v1.EventTypeNormal, Reason: "LaunchFallback", Message: cut(fmt.Sprintf(
				"no machine in %d of %d offerings, asking for the others: %s", len(l.options)-len(options), len(l.options), why))})
		}
	}
	s.mark(g)
}

// MinValues are, by label, how many values the options of a claim must have at least.
func MinValues(object *karpv1.NodeClaim) map[string]int {
	var least map[string]int
	for _, r := range object.Spec.Requirements {
		if r.MinValues == nil {
			continue
		}
		if least == nil {
			least = map[string]int{}
		}
		least[r.Key] = max(least[r.Key], *r.MinValues)
	}
	return least
}
