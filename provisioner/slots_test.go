// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"context"
	"testing"
	"time"

	"github.com/jit-scheduler/jit-scheduler/provisioner/lifecycle"
)

// One kind of call that takes all of its slots stops no other kind.
func TestSlowCallsStopOnlyTheirKind(t *testing.T) {
	t.Parallel()
	kinds := map[string]lifecycle.Action{
		"launches": lifecycle.Launch{}, "cloud": lifecycle.Terminate{}, "api": lifecycle.TaintNode{}, "polls": lifecycle.AwaitTermination{},
	}
	for name, busy := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSlots()
			n := cap(s.of(busy))
			for range n {
				if _, err := s.enter(t.Context(), busy); err != nil {
					t.Fatal(err)
				}
			}
			for other, action := range kinds {
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
				leave, err := s.enter(ctx, action)
				if (err == nil) != (other != name) {
					t.Errorf("%s after %d × %s: %v", other, n, name, err)
				}
				if err == nil {
					leave()
				}
				cancel()
			}
		})
	}
}
