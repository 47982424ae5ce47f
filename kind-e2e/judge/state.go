// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// State is all that was observed. It is pure: it takes what happened and when,
// and answers by replaying it. It is not safe for concurrent use.
type State struct {
	schedulerName string

	journal      []Observation // in order of arrival
	lastRevision uint64
	live         *world // by order of arrival, for View

	fakeSeen        bool // whether there is a fake at all
	calls           []Call
	instances       map[string]Instance // by id, as last seen
	launchTemplates []LaunchTemplate
	prices          map[string]float64 // on-demand USD/h by instance type
	rates           map[string]Rate    // by EC2 action
	queues          map[string]QueueCounts
	marks           []mark
	gaps            []gap
	audit           []AuditEvent
	metrics         []string
}

type mark struct {
	name string
	time time.Time
}

// gap is a stretch in which the judge did not see what happened.
type gap struct {
	time   time.Time
	source string
	reason string
}

// NewState judges the pods of schedulerName.
func NewState(schedulerName string) *State {
	return &State{
		schedulerName: schedulerName,
		live:          newWorld(),
		instances:     map[string]Instance{},
		prices:        map[string]float64{},
	}
}

// Observe takes one change of an API object. Observations of one kind come in
// the order of their watch; kinds may come in any order against each other. An
// object without a numeric resourceVersion is placed where it arrived.
func (s *State) Observe(o Observation) {
	object := o.object()
	if object == nil {
		return
	}
	o.revision = parseRevision(object.GetResourceVersion())
	if o.revision == 0 {
		o.revision = s.lastRevision
	}
	s.lastRevision = max(s.lastRevision, o.revision)
	s.journal = append(s.journal, o)
	s.live.apply(&o)
}

// ObserveCalls takes calls of the fake's log, in order; one that it has is
// replaced, as its answer may have come.
func (s *State) ObserveCalls(calls []Call) {
	copied := false
	for _, call := range calls {
		at, known := slices.BinarySearchFunc(s.calls, call.Seq, func(c Call, seq int64) int { return cmp.Compare(c.Seq, seq) })
		switch {
		case !known && at == len(s.calls):
			s.calls = append(s.calls, call)
		case known:
			if !copied { // views share what is there
				s.calls, copied = slices.Clone(s.calls), true
			}
			s.calls[at] = call
		}
	}
}

// callsSince is the sequence number to ask the fake's log from: that before the
// first call without an answer, else the last.
func (s *State) callsSince() int64 {
	if first := slices.IndexFunc(s.calls, func(c Call) bool { return c.Status == 0 }); first >= 0 {
		return s.calls[first].Seq - 1
	}
	return s.lastCall()
}

func (s *State) lastCall() int64 {
	if len(s.calls) == 0 {
		return 0
	}
	return s.calls[len(s.calls)-1].Seq
}

// ObserveInstances takes the fake's instances as they are now. An instance that
// is no longer listed is remembered.
func (s *State) ObserveInstances(instances []Instance) {
	s.fakeSeen = true
	for _, instance := range instances {
		if old, ok := s.instances[instance.ID]; ok {
			tags := maps.Clone(old.Tags)
			maps.Copy(tags, instance.Tags)
			instance.Tags = tags
		}
		if instance.Tags == nil {
			instance.Tags = map[string]string{}
		}
		s.instances[instance.ID] = instance
	}
}

// ObserveLaunchTemplates takes the launch templates that exist now.
func (s *State) ObserveLaunchTemplates(templates []LaunchTemplate) { s.launchTemplates = templates }

// ObservePrices takes the catalogue: on-demand USD/h by instance type.
func (s *State) ObservePrices(prices map[string]float64) { s.prices = prices }

// ObserveRates takes the token bucket of every EC2 action.
func (s *State) ObserveRates(rates map[string]Rate) { s.rates = rates }

// ObserveQueues takes the queues as they are now.
func (s *State) ObserveQueues(queues map[string]QueueCounts) { s.queues = queues }

// ObserveGap records that source was not seen at that time, and why.
func (s *State) ObserveGap(at time.Time, source, reason string) {
	s.gaps = append(s.gaps, gap{time: at, source: source, reason: reason})
}

// Mark names a moment; figures are also given between marks.
func (s *State) Mark(name string, at time.Time) {
	s.marks = append(s.marks, mark{name: name, time: at})
}

// replay calls visit for every observation in the order in which they were
// true, each after it was applied to the world.
func (s *State) replay(visit func(*world, *change)) *world {
	ordered := slices.Clone(s.journal)
	slices.SortStableFunc(ordered, func(a, b Observation) int { return cmp.Compare(a.revision, b.revision) })
	w := newWorld()
	for i := range ordered {
		c := w.apply(&ordered[i])
		visit(w, c)
	}
	return w
}

// instancesByLaunch are the instances, oldest first.
func (s *State) instancesByLaunch() []Instance {
	return slices.SortedFunc(maps.Values(s.instances), func(a, b Instance) int {
		return cmp.Or(a.LaunchedAt.Compare(b.LaunchedAt.Time), cmp.Compare(a.ID, b.ID))
	})
}
