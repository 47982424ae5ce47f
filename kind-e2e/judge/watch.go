// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	watchtools "k8s.io/client-go/tools/watch"
)

// crdPoll is how often a kind that the API server does not serve yet is looked for.
const crdPoll = 250 * time.Millisecond

// stream follows one kind of object without missing a change.
type stream struct {
	name  string
	list  func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch func(context.Context, metav1.ListOptions) (watch.Interface, error)
	// wrap makes an observation's object of one from the API.
	wrap func(runtime.Object) (Observation, error)
	// mayBeAbsent accepts that the kind is not served yet.
	mayBeAbsent bool

	sink sink
	once sync.Once
	up   chan struct{} // closed once the watch is open, or the kind is known to be absent

	mu    sync.Mutex
	known map[types.UID]Observation // last observation of what exists
	gone  map[types.UID]bool        // what the watch showed the end of
}

// sink takes what a stream sees.
type sink interface {
	observe(Observation)
	gap(source, reason string)
}

// run lists and watches until ctx ends. If the watch cannot be continued from
// where it was, that is a gap, and it starts over.
func (s *stream) run(ctx context.Context) {
	for again := false; ctx.Err() == nil; again = true {
		if again {
			sleep(ctx, time.Second)
		}
		revision, err := s.relist(ctx)
		if err != nil {
			if !s.absent(err) && ctx.Err() == nil {
				s.sink.gap(s.name, err.Error())
			}
			continue
		}
		if err := s.follow(ctx, revision); err != nil && ctx.Err() == nil {
			s.sink.gap(s.name, err.Error())
		}
	}
}

func (s *stream) absent(err error) bool {
	return s.mayBeAbsent && apierrors.IsNotFound(err)
}

// relist observes what exists and what has gone since the stream last looked.
// While the kind is not served it waits for it.
func (s *stream) relist(ctx context.Context) (revision string, err error) {
	list, err := s.list(ctx, metav1.ListOptions{})
	for s.absent(err) {
		s.established()
		if !sleep(ctx, crdPoll) {
			return "", ctx.Err()
		}
		list, err = s.list(ctx, metav1.ListOptions{})
	}
	if err != nil {
		return "", fmt.Errorf("listing %s: %w", s.name, err)
	}
	accessor, err := meta.ListAccessor(list)
	if err != nil {
		return "", fmt.Errorf("listing %s: %w", s.name, err)
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return "", fmt.Errorf("listing %s: %w", s.name, err)
	}
	now := time.Now()
	present := map[types.UID]bool{}
	for _, item := range items {
		o, err := s.wrap(item)
		if err != nil {
			return "", fmt.Errorf("listing %s: %w", s.name, err)
		}
		o.Time, o.Op, o.Listed = now, Added, true
		present[o.object().GetUID()] = true
		s.emit(o)
	}
	for _, o := range s.missing(present) {
		o.Time, o.Op, o.Listed = now, Deleted, true
		s.emit(o)
	}
	return accessor.GetResourceVersion(), nil
}

func (s *stream) missing(present map[types.UID]bool) []Observation {
	s.mu.Lock()
	defer s.mu.Unlock()
	var gone []Observation
	for uid, o := range s.known {
		if !present[uid] {
			gone = append(gone, o)
		}
	}
	return gone
}

// follow observes every change after revision until the watch cannot go on.
func (s *stream) follow(ctx context.Context, revision string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, revision, opener{stream: s, expired: cancel})
	if err != nil {
		return fmt.Errorf("watching %s: %w", s.name, err)
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		now := time.Now()
		if event.Type == watch.Error {
			return fmt.Errorf("watching %s: %w", s.name, apierrors.FromObject(event.Object))
		}
		o, err := s.wrap(event.Object)
		if err != nil {
			return fmt.Errorf("watching %s: %w", s.name, err)
		}
		o.Time, o.Op = now, Op(event.Type)
		s.emit(o)
	}
	return context.Cause(ctx)
}

func (s *stream) emit(o Observation) {
	uid := o.object().GetUID()
	s.mu.Lock()
	if o.Op == Deleted {
		delete(s.known, uid)
		s.gone[uid] = true
	} else {
		s.known[uid] = o
	}
	s.mu.Unlock()
	s.sink.observe(o)
}

func (s *stream) established() { s.once.Do(func() { close(s.up) }) }

// opener opens the stream's watch for a RetryWatcher. That one retries for ever
// when the server no longer has the revision to go on from; expired ends it.
type opener struct {
	*stream

	expired context.CancelCauseFunc
}

// WatchWithContext implements cache.WatcherWithContext.
func (o opener) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	opened, err := o.watch(ctx, options)
	switch {
	case err == nil:
		o.established()
	case apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || apierrors.IsNotFound(err):
		o.expired(fmt.Errorf("watching %s: %w", o.name, err))
	}
	return opened, err
}

// sleep waits; false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
