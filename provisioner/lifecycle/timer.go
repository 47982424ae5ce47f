// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"container/heap"
	"time"
)

// entity is something that is reconciled: a claim, a launch group, a pool, or an instance nobody asked for.
type entity interface {
	core() *base
	reconcile(s *State)
}

// base is what every entity has: whether it is due, when it is due at the latest, and its actions in flight.
type base struct {
	id     string
	dirty  bool
	gone   bool
	wake   time.Time
	index  int // in the heap, from 1; 0: not in it
	keys   []string
	entity entity
}

func (b *base) core() *base { return b }

// timers is a heap of entities by the time of their next look, then id.
type timers []*base

func (t timers) Len() int { return len(t) }
func (t timers) Less(i, j int) bool {
	if !t[i].wake.Equal(t[j].wake) {
		return t[i].wake.Before(t[j].wake)
	}
	return t[i].id < t[j].id
}

func (t timers) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].index, t[j].index = i+1, j+1
}

// Push implements heap.Interface.
func (t *timers) Push(x any) {
	b := x.(*base)
	*t = append(*t, b)
	b.index = len(*t)
}

// Pop implements heap.Interface.
func (t *timers) Pop() any {
	last := (*t)[len(*t)-1]
	(*t)[len(*t)-1] = nil
	*t = (*t)[:len(*t)-1]
	last.index = 0
	return last
}

func (t *timers) set(b *base) {
	switch {
	case b.wake.IsZero() && b.index > 0:
		heap.Remove(t, b.index-1)
	case b.wake.IsZero():
	case b.index > 0:
		heap.Fix(t, b.index-1)
	default:
		heap.Push(t, b)
	}
}

// wakeAt asks for a look at the entity no later than at. Only for use while the entity is reconciled.
func (s *State) wakeAt(e entity, at time.Time) {
	if b := e.core(); b.wake.IsZero() || at.Before(b.wake) {
		b.wake = at
	}
}

// mark has the entity reconciled before Apply returns.
func (s *State) mark(e entity) {
	if b := e.core(); !b.dirty && !b.gone {
		b.dirty, b.entity = true, e
		s.dirty = append(s.dirty, e)
	}
}

// settle reconciles what is marked, in the order of marking, until nothing is.
func (s *State) settle() {
	if !s.synced {
		return
	}
	for i := 0; i < len(s.dirty); i++ {
		e := s.dirty[i]
		b := e.core()
		b.dirty = false
		if b.gone {
			continue
		}
		b.wake = time.Time{}
		e.reconcile(s)
		if !b.gone {
			s.timers.set(b)
		}
	}
	clear(s.dirty)
	s.dirty = s.dirty[:0]
}

// tick marks what is due by now.
func (s *State) tick() {
	for len(s.timers) > 0 && !s.timers[0].wake.After(s.now) {
		b := heap.Pop(&s.timers).(*base)
		s.mark(b.entity)
	}
}

// forget drops an entity's deadline and flights for good.
func (s *State) forget(e entity) {
	b := e.core()
	b.gone, b.wake = true, time.Time{}
	s.timers.set(b)
	for _, key := range b.keys {
		if f := s.flights[key]; f != nil && f.owner == e {
			delete(s.flights, key)
		}
	}
}
