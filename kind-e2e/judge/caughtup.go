// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// caughtUp lists once and waits until the watch has shown all of it; an error
// names an object that it did not show in time.
func (s *stream) caughtUp(ctx context.Context, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within+fakeTimeout)
	defer cancel()
	list, err := s.list(ctx, metav1.ListOptions{})
	if s.absent(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("listing %s: %w", s.name, err)
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return fmt.Errorf("listing %s: %w", s.name, err)
	}
	listed := make([]Observation, 0, len(items))
	for _, item := range items {
		o, err := s.wrap(item)
		if err != nil {
			return fmt.Errorf("listing %s: %w", s.name, err)
		}
		listed = append(listed, o)
	}
	accessor, err := meta.ListAccessor(list)
	if err != nil {
		return fmt.Errorf("listing %s: %w", s.name, err)
	}
	revision := parseRevision(accessor.GetResourceVersion())
	for deadline := time.Now().Add(within); ; {
		behind := s.behind(listed, revision)
		if behind == "" {
			return nil
		}
		if time.Now().After(deadline) || !sleep(ctx, 10*time.Millisecond) {
			return fmt.Errorf("the watch of %s did not show what a list has: %s", s.name, behind)
		}
	}
}

// behind says in what the watch lags behind a list made at revision; empty if in nothing.
func (s *stream) behind(listed []Observation, revision uint64) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	present := map[string]bool{}
	for i := range listed {
		object := listed[i].object()
		present[string(object.GetUID())] = true
		known, ok := s.known[object.GetUID()]
		if !ok {
			if s.gone[object.GetUID()] {
				continue
			}
			return object.GetName() + " is not known"
		}
		if parseRevision(known.object().GetResourceVersion()) < parseRevision(object.GetResourceVersion()) {
			return object.GetName() + " is known at an older resourceVersion"
		}
	}
	for uid, known := range s.known {
		if !present[string(uid)] && parseRevision(known.object().GetResourceVersion()) <= revision {
			return known.object().GetName() + " is gone"
		}
	}
	return ""
}
