// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Violation is one thing that must not have happened.
type Violation struct {
	Invariant string    `json:"invariant"`
	Time      time.Time `json:"time"`
	Subject   string    `json:"subject"` // the node, pod, claim, instance… it is about
	Message   string    `json:"message"`
}

// Rules are what a case may set about the invariants. The zero value is the
// strictest judge that does not ask for an empty account at the end.
type Rules struct {
	// WantNothingLeft forbids instances, Nodes of a NodePool, NodeClaims and
	// launch templates at the end.
	WantNothingLeft bool
	// ReasonMaxAge is how old the last event of an unbound pod may be to count
	// as its current reason; 10 minutes if 0.
	ReasonMaxAge time.Duration
	// Limits is the most vCPU by NodePool name.
	Limits map[string]float64
	// Replicas are the replicas between which leadership moves, in any order.
	Replicas []Replica
	// AllowUnlaunched accepts a claim that never held a pod if it never had an
	// instance either: cases in which launches fail or are cancelled.
	AllowUnlaunched bool
	// AllowSwept accepts an instance that belongs to no claim if it is
	// terminated at the end: cases in which the sweep has work to do.
	AllowSwept bool
	// Skip turns invariants off: name → reason, which the report prints.
	Skip map[string]string
}

// Replica is how the calls of one replica are recognised.
type Replica struct {
	Name string
	// AccessKey is the one it signs AWS calls with.
	AccessKey string
	// User and UserAgent, if set, must both match an audit event: User exactly,
	// UserAgent as a part of it.
	User, UserAgent string
	// CredentialID, if set, is the id of its token in the audit log
	// (authentication.kubernetes.io/credential-id).
	CredentialID string
}

// input is what an invariant may look at when the run is over.
type input struct {
	*State

	rules Rules
	links *links
	end   time.Time
}

// invariant looks at every change in order, then at the whole.
type invariant interface {
	// step is called after c was applied to w.
	step(w *world, c *change, report reporter)
	// finish is called once, with the world at the end.
	finish(w *world, report reporter)
}

// reporter records one violation.
type reporter func(at time.Time, subject, format string, args ...any)

// noStep is for invariants that only look at the end.
type noStep struct{}

func (noStep) step(*world, *change, reporter) {}

// noFinish is for invariants that only look at changes.
type noFinish struct{}

func (noFinish) finish(*world, reporter) {}

// invariants are all of them by name.
var invariants = map[string]func(*input) invariant{
	"node-overcommit":        newNodeOvercommit,
	"pod-lost":               newPodLost,
	"pod-failed-admission":   newPodFailedAdmission,
	"bind-before-ready":      newBindBeforeReady,
	"one-instance-per-claim": newOneInstancePerClaim,
	"claim-never-used":       newClaimNeverUsed,
	"leftovers":              newLeftovers,
	"held-room-stolen":       newHeldRoomStolen,
	"limits":                 newLimits,
	"leader":                 newLeader,
	"selected-node":          newSelectedNode,
	"flush-metric":           newFlushMetric,
	"watch-gap":              newWatchGap,
	"unknown-parameter":      newUnknownParameter,
	"token-launches-once":    newTokenLaunchesOnce,
	"request-rate":           newRequestRate,
	"refused-pool":           newRefusedPool,
	"instance-tags":          newInstanceTags,
	"queue-messages":         newQueueMessages,
}

// ofFake are the invariants that need a fake AWS endpoint.
var ofFake = []string{
	"one-instance-per-claim", "unknown-parameter", "token-launches-once", "request-rate", "refused-pool", "instance-tags", "queue-messages",
}

// Invariants are the names of all invariants, sorted.
func Invariants() []string { return slices.Sorted(maps.Keys(invariants)) }

// validate refuses rules that would silently not do what they say.
func (r *Rules) validate() error {
	for name, reason := range r.Skip {
		if _, ok := invariants[name]; !ok {
			return fmt.Errorf("rules: cannot skip %q, which is none of %v", name, Invariants())
		}
		if reason == "" {
			return fmt.Errorf("rules: skipping %s needs a reason", name)
		}
	}
	if len(r.Replicas) == 1 {
		return errors.New("rules: leadership does not move within one replica")
	}
	return nil
}

// notJudged are the invariants about which a pass says nothing, and why: those
// that the case skips, and those that nothing was given for.
func (s *State) notJudged(rules Rules) map[string]string {
	reasons := map[string]string{}
	if !s.fakeSeen {
		for _, name := range ofFake {
			reasons[name] = "no fake AWS endpoint"
		}
	} else if len(s.queues) == 0 {
		reasons["queue-messages"] = "no queues"
	}
	if !rules.WantNothingLeft {
		reasons["leftovers"] = "the case leaves things"
	}
	if len(rules.Limits) == 0 {
		reasons["limits"] = "no limits given"
	}
	if len(rules.Replicas) == 0 {
		reasons["leader"] = "no replicas given"
	}
	if len(s.metrics) == 0 {
		reasons["flush-metric"] = "no metrics given"
	}
	maps.Copy(reasons, rules.Skip)
	return reasons
}

// Check judges everything that was observed, as of end, by the time it happened.
func (s *State) Check(end time.Time, rules Rules) []Violation {
	if rules.ReasonMaxAge == 0 {
		rules.ReasonMaxAge = 10 * time.Minute
	}
	in := &input{State: s, rules: rules, links: newLinks(s), end: end}
	type running struct {
		invariant
		report reporter
	}
	var violations []Violation
	var all []running
	for name, build := range invariants {
		if _, skipped := rules.Skip[name]; skipped {
			continue
		}
		report := func(at time.Time, subject, format string, args ...any) {
			violations = append(violations, Violation{
				Invariant: name, Time: at, Subject: subject, Message: fmt.Sprintf(format, args...),
			})
		}
		all = append(all, running{invariant: build(in), report: report})
	}
	w := s.replay(func(w *world, c *change) {
		for _, r := range all {
			r.step(w, c, r.report)
		}
	})
	for _, r := range all {
		r.finish(w, r.report)
	}
	slices.SortFunc(violations, func(a, b Violation) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Invariant, b.Invariant),
			cmp.Compare(a.Subject, b.Subject), cmp.Compare(a.Message, b.Message))
	})
	return violations
}
