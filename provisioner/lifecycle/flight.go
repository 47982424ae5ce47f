// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"
	"time"
)

type flightState int

const (
	sent flightState = iota
	answered
	failed
)

// flight is the last issue of an action: what keeps it from being issued with every event.
type flight struct {
	owner  entity
	action Action
	// want tells two wishes under one key apart: another wish may go out as soon as the former was answered.
	want  string
	state flightState
	// until the action is not issued again: unanswered, or answered and the effect not yet seen, or backing off.
	until time.Time
	tries int
}

// send issues an action that reports back, unless it is in flight. It tells whether it did.
func (s *State) send(e entity, a Action, want string, timeout time.Duration) bool {
	key := a.Key()
	f := s.flights[key]
	if f != nil && f.owner != e && f.state == sent && s.now.Before(f.until) {
		s.wakeAt(e, f.until)
		return false
	}
	if f == nil || f.owner != e {
		f = &flight{owner: e}
		s.flights[key] = f
		b := e.core()
		if !slices.Contains(b.keys, key) {
			b.keys = append(b.keys, key)
		}
	} else if s.now.Before(f.until) && (f.state != answered || f.want == want) {
		s.wakeAt(e, f.until)
		return false
	}
	if f.want != want {
		f.tries = 0
	}
	f.action, f.want, f.state, f.until = a, want, sent, s.now.Add(timeout)
	s.emit(a)
	s.wakeAt(e, f.until)
	return true
}

// pending says whether an action was issued and not answered in time yet.
func (s *State) pending(key string) bool {
	f := s.flights[key]
	return f != nil && f.state == sent && s.now.Before(f.until)
}

// answer notes success. The effect may take until to be seen, which grows each time it is not; then it is issued
// again.
func (s *State) answer(key string, settle time.Duration) *flight {
	f := s.flights[key]
	if f == nil {
		return nil
	}
	if settle == 0 {
		settle = s.backoff(f.tries + 4)
	}
	f.state, f.until = answered, s.now.Add(settle)
	f.tries++
	s.mark(f.owner)
	return f
}

// fail notes failure: issued again after a back-off.
func (s *State) fail(key string) *flight {
	f := s.flights[key]
	if f == nil {
		return nil
	}
	f.state, f.until = failed, s.now.Add(s.backoff(f.tries))
	f.tries++
	s.mark(f.owner)
	return f
}

func (s *State) backoff(tries int) time.Duration {
	d := s.cfg.BackoffMin
	for range min(tries, 16) {
		if d *= 2; d >= s.cfg.BackoffMax {
			return s.cfg.BackoffMax
		}
	}
	return d
}

func (s *State) emit(a Action) { s.out = append(s.out, a) }
