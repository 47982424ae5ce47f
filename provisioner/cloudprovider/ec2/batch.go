// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
)

const (
	// batchIdle and batchMax bound how long a question waits for others of its kind.
	batchIdle = 100 * time.Millisecond
	batchMax  = time.Second
	// batchSize is how many instances one call names.
	batchSize = 500
	// batchAlone is how many are asked about one by one at a time.
	batchAlone = 10
)

// batch makes one call of many about single instances. An instance that is asked about twice is named once, and both
// get the answer.
type batch[T any] struct {
	// call answers for the instances it knows; those it leaves out are asked about alone, as are all of them after an
	// error that is about some of them (alone). It must not keep ids.
	call  func(ctx context.Context, ids []string) (map[string]T, error)
	alone func(error) bool

	mu     sync.Mutex
	filled *window[T] // nil: none is open
}

// window are the questions of one call.
type window[T any] struct {
	waiting map[string][]chan answer[T]
	began   time.Time
	more    chan struct{} // something came
	full    chan struct{} // closed: ask now
}

type answer[T any] struct {
	value T
	err   error
}

// ask waits for the instance's answer, ErrInstanceNotFound if there is no such instance.
func (b *batch[T]) ask(ctx context.Context, id string) (T, error) {
	reply := make(chan answer[T], 1)
	b.enter(ctx, id, reply)
	select {
	case a := <-reply:
		return a.value, a.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}

func (b *batch[T]) enter(ctx context.Context, id string, reply chan answer[T]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := b.filled
	if w == nil {
		w = &window[T]{waiting: map[string][]chan answer[T]{}, began: time.Now(), more: make(chan struct{}, 1), full: make(chan struct{})}
		b.filled = w
		// The call is everybody's: it does not end with who came first.
		go b.run(context.WithoutCancel(ctx), w)
	}
	w.waiting[id] = append(w.waiting[id], reply)
	if len(w.waiting) == batchSize {
		b.filled = nil
		close(w.full)
		return
	}
	select {
	case w.more <- struct{}{}:
	default:
	}
}

// run waits until nobody comes any more, and asks.
func (b *batch[T]) run(ctx context.Context, w *window[T]) {
	for open := true; open; {
		timer := time.NewTimer(min(batchIdle, time.Until(w.began.Add(batchMax))))
		select {
		case <-w.full:
			open = false
		case <-w.more:
		case <-timer.C:
			open = false
		}
		timer.Stop()
	}
	b.mu.Lock()
	if b.filled == w {
		b.filled = nil
	}
	b.mu.Unlock()
	ids := slices.Sorted(maps.Keys(w.waiting))
	found, err := b.call(ctx, ids)
	var rest []string
	for _, id := range ids {
		switch value, ok := found[id]; {
		case ok:
			w.answer(id, answer[T]{value: value})
		case err != nil && (len(ids) == 1 || !b.alone(err)):
			w.answer(id, answer[T]{err: notFound(err)})
		case err == nil && len(ids) == 1:
			w.answer(id, answer[T]{err: cloudprovider.ErrInstanceNotFound})
		default:
			rest = append(rest, id)
		}
	}
	b.oneByOne(ctx, w, rest)
}

func (b *batch[T]) oneByOne(ctx context.Context, w *window[T], ids []string) {
	var group errgroup.Group
	group.SetLimit(batchAlone)
	for _, id := range ids {
		group.Go(func() error {
			found, err := b.call(ctx, []string{id})
			value, ok := found[id]
			if !ok && err == nil {
				err = cloudprovider.ErrInstanceNotFound
			}
			w.answer(id, answer[T]{value, notFound(err)})
			return nil
		})
	}
	_ = group.Wait() // everybody has an answer of his own
}

func (w *window[T]) answer(id string, a answer[T]) {
	for _, reply := range w.waiting[id] {
		reply <- a
	}
}

// notFound gives an answer of EC2 that there is no such instance its name.
func notFound(err error) error {
	if hasCode(err, instanceNotFoundCodes) {
		return cloudprovider.ErrInstanceNotFound
	}
	return err
}

// aboutOne are errors of a call that one of its instances causes: the others are asked about without it.
func aboutOne(err error) bool {
	return hasCode(err, instanceNotFoundCodes) || hasCode(err, permissionCodes) || hasCode(err, oneInstanceCodes)
}

// oneInstanceCodes refuse a whole call because of a protected instance, or one in a state that does not allow it.
var oneInstanceCodes = []string{"OperationNotPermitted", "IncorrectInstanceState", "IncorrectState", "UnsupportedOperation"}
