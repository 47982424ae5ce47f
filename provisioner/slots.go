// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"context"

	"github.com/jit-scheduler/jit-scheduler/provisioner/lifecycle"
)

// slots bound the calls in flight, so that a burst cannot take all connections. Each kind has its own: a cloud that
// answers slowly must not stop writes to Nodes and NodeClaims, nor an API server that does so terminations, nor a burst
// of launches either of them.
type slots struct{ api, launches, cloud, polls chan struct{} }

const (
	// maxCalls is the number of API calls in flight.
	maxCalls = 100
	// maxCloudCalls is the number of launches, and of other cloud calls, in flight or waiting for their turn in the
	// adapter, which has a queue of its own.
	maxCloudCalls = 5000
	// maxPolls is generous: those that wait for machines to end share their calls in the adapter.
	maxPolls = 10000
)

func newSlots() slots {
	return slots{
		api: make(chan struct{}, maxCalls), launches: make(chan struct{}, maxCloudCalls), cloud: make(chan struct{}, maxCloudCalls),
		polls: make(chan struct{}, maxPolls),
	}
}

func (s *slots) of(action lifecycle.Action) chan struct{} {
	switch action.(type) {
	case lifecycle.Launch:
		return s.launches
	case lifecycle.FindInstances, lifecycle.TagInstance, lifecycle.Terminate:
		return s.cloud
	case lifecycle.AwaitTermination:
		return s.polls
	}
	return s.api
}

// enter waits for a free slot; leave must be called once the call is over.
func (s *slots) enter(ctx context.Context, action lifecycle.Action) (leave func(), err error) {
	slot := s.of(action)
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case slot <- struct{}{}:
		return func() { <-slot }, nil
	}
}
