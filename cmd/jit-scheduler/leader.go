// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// leaseGuard knows when the lease was last written as ours. Leader election itself learns of a lost lease only when
// its own timer fires, which a stopped process cannot hear: mutating calls ask the guard right before.
type leaseGuard struct {
	resourcelock.Interface

	// valid is how long a renewal counts: the renew deadline, which leaves the rest of the lease for calls that
	// were just let through.
	valid time.Duration

	mu sync.Mutex
	// renewed is when the last successful write was begun, on the monotonic clock; zero while the lease is not ours.
	renewed time.Time
}

func newLeaseGuard(lock resourcelock.Interface, valid time.Duration) *leaseGuard {
	return &leaseGuard{Interface: lock, valid: valid}
}

// Create implements resourcelock.Interface.
func (g *leaseGuard) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return g.write(ctx, r, g.Interface.Create)
}

// Update implements resourcelock.Interface.
func (g *leaseGuard) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return g.write(ctx, r, g.Interface.Update)
}

func (g *leaseGuard) write(ctx context.Context, r resourcelock.LeaderElectionRecord, do func(context.Context, resourcelock.LeaderElectionRecord) error) error {
	ours := r.HolderIdentity == g.Identity()
	if !ours {
		// Being released: no call may pass once others can see it.
		g.set(time.Time{})
	}
	begun := time.Now()
	err := do(ctx, r)
	if err == nil && ours {
		g.set(begun)
	}
	return err
}

func (g *leaseGuard) set(t time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.renewed = t
}

// Leading is nil if the lease is ours for certain.
func (g *leaseGuard) Leading() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.renewed.IsZero() {
		return fmt.Errorf("the lease %s is not ours", g.Describe())
	}
	if age := time.Since(g.renewed); age > g.valid {
		return fmt.Errorf("the lease %s was last renewed %s ago", g.Describe(), age.Round(time.Millisecond))
	}
	return nil
}
