// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"cmp"
	"slices"
	"time"
)

// leader: once a replica made its first mutating call, the replica that led
// before makes none any more, neither to AWS (the fake's log, by access key) nor
// to the API server (audit events). A replica that may lead twice needs another
// access key for its second term.
type leader struct {
	noStep

	in *input
}

func newLeader(in *input) invariant { return &leader{in: in} }

type mutation struct {
	time    time.Time
	replica string
	what    string
}

func (l *leader) finish(_ *world, report reporter) {
	if len(l.in.rules.Replicas) < 2 {
		return
	}
	mutations := l.mutations()
	slices.SortStableFunc(mutations, func(a, b mutation) int { return cmp.Compare(a.time.UnixNano(), b.time.UnixNano()) })
	former := map[string]mutation{} // replica that led before → first call of its successor
	current := ""
	for _, m := range mutations {
		if successor, ok := former[m.replica]; ok {
			report(m.time, m.replica, "%s, %s after the first mutating call of the new leader %s (%s)",
				m.what, m.time.Sub(successor.time), successor.replica, successor.what)
			continue
		}
		if m.replica != current && current != "" {
			former[current] = m
		}
		current = m.replica
	}
}

func (l *leader) mutations() []mutation {
	var all []mutation
	for i := range l.in.calls {
		call := &l.in.calls[i]
		if !call.mutating() {
			continue
		}
		for _, r := range l.in.rules.Replicas {
			if r.AccessKey != "" && r.AccessKey == call.AccessKey {
				all = append(all, mutation{time: call.Time.Time, replica: r.Name, what: call.Action})
			}
		}
	}
	for i := range l.in.audit {
		event := &l.in.audit[i]
		if !event.mutating() {
			continue
		}
		for _, r := range l.in.rules.Replicas {
			if event.of(&r) {
				all = append(all, mutation{time: event.Time, replica: r.Name, what: event.String()})
			}
		}
	}
	return all
}
