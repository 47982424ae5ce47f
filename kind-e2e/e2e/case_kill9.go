// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/judge"
)

var kill9WithheldCase = Case{
	Name:  "kill9-withheld",
	About: "killed when EC2 had launched and not answered; instances unknown to Describe for 10 s: no second instance, same NodeClaims",
	Run: func(ctx context.Context, t *Trial) error {
		if err := t.Fake.Set(ctx, map[string]any{"describeLag": "10s"}); err != nil {
			return err
		}
		return t.killDuringLaunch(ctx, map[string]any{"action": "CreateFleet", "withholdReply": true, "times": 1}, func(v *judge.View) string {
			if len(v.Instances) == 0 {
				return "no instance was launched"
			}
			return ""
		})
	},
}

var kill9DroppedCase = Case{
	Name:  "kill9-dropped",
	About: "killed when no CreateFleet had arrived yet: the same NodeClaims get their one instance",
	Run: func(ctx context.Context, t *Trial) error {
		return t.killDuringLaunch(ctx, map[string]any{"action": "CreateFleet", "dropRequest": true}, func(*judge.View) string {
			if n, err := t.Fake.Fired(ctx); err != nil || n == 0 {
				return fmt.Sprintf("%d requests were dropped (%v)", n, err)
			}
			return ""
		})
	},
}

var kill9ParkedCase = Case{
	Name:  "kill9-parked",
	About: "killed when one, half, all of the pods are reserved: the rest come while it is down; all are bound, NodeClaims stay",
	Run:   runKill9Parked,
}

// killDuringLaunch kills the product once the fault has had its effect.
func (t *Trial) killDuringLaunch(ctx context.Context, fault map[string]any, happened func(*judge.View) string) error {
	if err := t.Start(ctx); err != nil {
		return err
	}
	if err := t.Buyable(ctx); err != nil {
		return err
	}
	if _, err := t.Fake.Fault(ctx, fault); err != nil {
		return err
	}
	if err := t.Create(ctx, t.Series("alone", 3, "2", alone)...); err != nil {
		return err
	}
	if err := t.waitNominated(ctx, "alone", 3); err != nil {
		return err
	}
	if err := t.Wait(ctx, settleTimeout, happened); err != nil {
		return err
	}
	return t.restart(ctx, "alone", 3, t.Fake.ClearFaults)
}

// waitNominated waits until n pods are nominated to NodeClaims that exist.
func (t *Trial) waitNominated(ctx context.Context, app string, n int) error {
	return t.Wait(ctx, settleTimeout, func(v *judge.View) string {
		nominated := 0
		for _, pod := range v.Select(t.App(app)) {
			if v.Claims[pod.Status.NominatedNodeName] != nil {
				nominated++
			}
		}
		if nominated != n {
			return fmt.Sprintf("%d pods %q are nominated to NodeClaims, wanted %d", nominated, app, n)
		}
		return ""
	})
}

// restart kills the product, does what happens meanwhile, starts it again and wants all n pods bound, on the NodeClaims
// that there were and as many instances as NodeClaims.
func (t *Trial) restart(ctx context.Context, app string, n int, meanwhile func(context.Context) error) error {
	before := claimUIDs(t.Judge.View())
	if err := t.Kill(ctx); err != nil {
		return err
	}
	if err := meanwhile(ctx); err != nil {
		return err
	}
	if err := t.Start(ctx); err != nil {
		return err
	}
	if err := t.WaitBound(ctx, app, n, time.Minute); err != nil {
		return err
	}
	v := t.Judge.View()
	after := claimUIDs(v)
	for _, claim := range before {
		if !slices.Contains(after, claim) {
			return fmt.Errorf("NodeClaim %s is gone; there are %v", claim, after)
		}
	}
	if len(v.Instances) != len(after) {
		return fmt.Errorf("%d instances were launched for %d NodeClaims", len(v.Instances), len(after))
	}
	return nil
}

// runKill9Parked kills the product three times, with one, half and all of eight pods reserved on machines that are
// still booting.
func runKill9Parked(ctx context.Context, t *Trial) error {
	if err := t.Start(ctx); err != nil {
		return err
	}
	if err := t.Buyable(ctx); err != nil {
		return err
	}
	if err := t.Fake.Set(ctx, map[string]any{"bootDelay": "8s"}); err != nil {
		return err
	}
	for i, parked := range []int{1, 4, 8} {
		app := fmt.Sprintf("round-%d", i)
		pods := t.Series(app, 8, "900m")
		if err := t.Create(ctx, pods[:parked]...); err != nil {
			return err
		}
		if err := t.waitNominated(ctx, app, parked); err != nil {
			return err
		}
		err := t.restart(ctx, app, 8, func(ctx context.Context) error { return t.Create(ctx, pods[parked:]...) })
		if err != nil {
			return fmt.Errorf("killed with %d of 8 pods reserved: %w", parked, err)
		}
	}
	return nil
}
