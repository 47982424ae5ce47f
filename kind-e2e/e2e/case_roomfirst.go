// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"time"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/judge"
)

var roomFirstCase = Case{
	Name:  "room-first",
	About: "pods that a ready node can take never wait for a planned one, in a burst, beside a launch, and when room frees up",
	Rules: judge.Rules{Skip: map[string]string{
		"claim-never-used": "a launch whose answer never came is repeated, and buys a machine that nobody needs any more",
	}},
	Run: runRoomFirst,
}

func runRoomFirst(ctx context.Context, t *Trial) error {
	if err := t.Start(ctx); err != nil {
		return err
	}
	if err := t.Buyable(ctx, change{"spec.disruption.consolidateAfter", "5s"}); err != nil {
		return err
	}
	if err := t.AddNode(ctx, "roomy", "6500m"); err != nil {
		return err
	}
	// No launch arrives until the end, so that whoever waits for one is seen to wait.
	if _, err := t.Fake.Fault(ctx, map[string]any{"action": "CreateFleet", "dropRequest": true}); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{t.burstTakesRoom, t.roomBesideLaunch, t.roomFreesUp} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if err := t.Fake.ClearFaults(ctx); err != nil {
		return err
	}
	return t.WaitGone(ctx, "machine", MachinesGone, time.Minute)
}

// burstTakesRoom: of six pods at once, the four that the node can take are bound to it, two wait for a machine.
func (t *Trial) burstTakesRoom(ctx context.Context) error {
	if err := t.Create(ctx, t.Pod("filler", "filler", "2", byDefaultScheduler)); err != nil {
		return err
	}
	if err := t.WaitBound(ctx, "filler", 1, settleTimeout); err != nil {
		return err
	}
	if err := t.Create(ctx, t.Series("burst", 6, "1")...); err != nil {
		return err
	}
	return t.Wait(ctx, settleTimeout, func(v *judge.View) string {
		if n := v.Count(t.App("burst")); n.Bound != 4 || n.Nominated != 2 {
			return fmt.Sprintf("%d pods are bound and %d nominated, wanted 4 and 2", n.Bound, n.Nominated)
		}
		return ""
	})
}

// roomBesideLaunch: a small pod is bound to the node's last room although a planned machine has more.
func (t *Trial) roomBesideLaunch(ctx context.Context) error {
	if err := t.Create(ctx, t.Pod("small", "small", "500m")); err != nil {
		return err
	}
	return t.WaitBound(ctx, "small", 1, settleTimeout)
}

// roomFreesUp: the reserved pods get the room that becomes free on the node.
func (t *Trial) roomFreesUp(ctx context.Context) error {
	if err := t.Delete(ctx, "filler"); err != nil {
		return err
	}
	return t.WaitBound(ctx, "burst", 6, settleTimeout)
}
