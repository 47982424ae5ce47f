// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
)

// group is a set of identical claims that are launched together. An attempt is one token: it is replayed, with the
// same claims, until its outcome is known; only then there may be another attempt, for the claims without a machine.
type group struct {
	base
	name    string
	members []*claim // by ordinal
	// flying is the attempt whose outcome is not known.
	flying *launch
	// last is the highest attempt of any member; known are the attempts whose outcome is.
	last  int
	known map[int]bool
	patience
}

// launch is an attempt in progress.
type launch struct {
	attempt int
	claims  []*claim
	options []cloudprovider.LaunchOption
	// doubt: the request may have been sent before and its answer lost. A refusal that the cloud, or we, may give
	// without looking at the token then proves nothing.
	doubt bool
	// unseen: the last request is known not to have been acted on.
	unseen bool
	// finding: instances are looked up until findUntil, then verdict holds for claims without one.
	finding   bool
	findUntil time.Time
	verdict   *LaunchFailed
}

func (s *State) join(id string, c *claim) {
	g := s.groups[id]
	if g == nil {
		g = &group{name: id, known: map[int]bool{}}
		g.id = "group/" + id
		s.groups[id] = g
	}
	c.group = g
	i, _ := slices.BinarySearchFunc(g.members, c, func(a, b *claim) int {
		if a.ordinal != b.ordinal {
			return a.ordinal - b.ordinal
		}
		return strings.Compare(a.name, b.name)
	})
	g.members = slices.Insert(g.members, i, c)
	g.last = max(g.last, c.attempt)
}

// leaveGroup drops a claim that is gone; the last one takes the group with it.
func (s *State) leaveGroup(c *claim) {
	g := c.group
	g.members = slices.DeleteFunc(g.members, func(m *claim) bool { return m == c })
	if len(g.members) == 0 {
		s.forget(g)
		delete(s.groups, g.name)
	} else {
		s.mark(g)
	}
}

// launching says that the outcome of a launch that includes the claim is not known.
func (g *group) launching(c *claim) bool {
	return g.flying != nil && slices.Contains(g.flying.claims, c)
}

func (g *group) reconcile(s *State) {
	if g.flying == nil && s.now.Before(g.notBefore) {
		s.wakeAt(g, g.notBefore)
		return
	}
	if g.flying == nil && !g.begin() {
		return
	}
	l := g.flying
	if !l.finding && !s.pending(Launch{Group: g.name}.Key()) {
		s.callOff(g)
	}
	if l.finding {
		s.send(g, FindInstances{Group: g.name}, "", s.cfg.ActionTimeout)
		return
	}
	a := Launch{Group: g.name, Attempt: l.attempt, Options: l.options}
	for _, c := range l.claims {
		a.Claims = append(a.Claims, c.object)
	}
	want := strconv.Itoa(l.attempt)
	f := s.flights[a.Key()]
	before := f != nil && f.want == want
	if s.send(g, a, want, s.cfg.LaunchActionTimeout) {
		l.doubt, l.unseen = l.doubt || before && !l.unseen, false
	}
}

// callOff ends an attempt without an answer whose machines nobody wants: it is not replayed; what it may have launched
// is looked for, longer than the cloud's lists lag, and ended with the claims.
func (s *State) callOff(g *group) {
	l := g.flying
	if slices.ContainsFunc(l.claims, func(c *claim) bool {
		return !c.ending() && (s.wanted(c) || s.flights[Launch{Group: g.name}.Key()] == nil)
	}) {
		return
	}
	for _, c := range l.claims {
		s.giveUp(c, reasonWithdrawn, "no pod needs it any more")
	}
	s.find(g, nil)
}

// begin starts the lowest attempt that has claims without a machine, once all of the group are created and say so.
func (g *group) begin() bool {
	attempt := -1
	for _, c := range g.members {
		if c.ending() || c.launched() {
			continue
		}
		if !c.exists || annotationInt(c.object, AttemptAnnotation, 1) != c.attempt {
			return false
		}
		if attempt < 0 || c.attempt < attempt {
			attempt = c.attempt
		}
	}
	if attempt < 0 {
		return false
	}
	l := &launch{attempt: attempt}
	for _, c := range g.members {
		if c.ending() || c.attempt != attempt {
			continue
		}
		l.claims = append(l.claims, c)
		l.doubt = l.doubt || c.restored
		if len(l.options) == 0 && !c.launched() { // one that is launched has those of its machine after a restart
			l.options = c.options
		}
	}
	if len(l.options) == 0 {
		return false // waits for Restore
	}
	g.flying = l
	return true
}

// find looks instances up before anything else is done; verdict is what holds for claims that have none.
func (s *State) find(g *group, verdict *LaunchFailed) {
	l := g.flying
	if !l.finding {
		l.finding, l.findUntil = true, s.now.Add(s.cfg.FindFor)
	}
	l.verdict = verdict
	s.mark(g)
}

func (s *State) onLaunched(ev Launched) {
	g := s.groups[ev.Group]
	if g == nil || g.flying == nil || g.flying.attempt != ev.Attempt {
		s.late(ev.Instances)
		return
	}
	s.answer(Launch{Group: g.name}.Key(), 0)
	l := g.flying
	s.match(g, l.claims, ev.Instances)
	g.resolve(s)
	g.patience = patience{}
	s.shorten(g, l, ev.Failures)
}

func (s *State) onFound(ev Found) {
	g := s.groups[ev.Group]
	if g == nil || g.flying == nil || !g.flying.finding {
		return
	}
	l := g.flying
	s.answer(FindInstances{Group: g.name}.Key(), s.cfg.FindEvery)
	s.match(g, g.members, ev.Instances)
	if s.now.Before(l.findUntil) && slices.ContainsFunc(l.claims, func(c *claim) bool { return !c.launched() }) {
		return
	}
	g.resolve(s)
	if l.verdict != nil {
		s.judge(g, l, *l.verdict)
		return
	}
	s.again(g, l, l.options, "")
}

// resolve ends an attempt: its outcome is known.
func (g *group) resolve(s *State) {
	g.known[g.flying.attempt] = true
	for _, c := range g.flying.claims {
		s.mark(c)
	}
	g.flying = nil
	s.mark(g)
}

func (s *State) onLaunchFailed(ev LaunchFailed) {
	g := s.groups[ev.Group]
	if g == nil || g.flying == nil || g.flying.attempt != ev.Attempt || g.flying.finding {
		return
	}
	l := g.flying
	key := Launch{Group: g.name}.Key()
	switch {
	case ev.Failure == cloudprovider.TokenMismatch:
		s.answer(key, 0)
		s.find(g, nil)
	case ev.Failure == cloudprovider.Throttled && !ev.Spent:
		s.fail(key)
		l.unseen = true
		s.excuse(l, ev)
	case ev.Failure == cloudprovider.Unknown:
		s.fail(key)
		s.tell(l, metav1.ConditionUnknown, ev)
	case l.doubt && (ev.Failure != cloudprovider.InsufficientCapacity || ev.Untried):
		s.answer(key, 0)
		s.find(g, &ev)
	default:
		s.answer(key, 0)
		g.resolve(s)
		s.judge(g, l, ev)
	}
}

// cut keeps a message within what conditions take.
func cut(message string) string {
	if len(message) > 1024 {
		return strings.ToValidUTF8(message[:1024], "")
	}
	return message
}
