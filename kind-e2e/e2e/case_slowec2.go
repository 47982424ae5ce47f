// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"time"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/judge"
)

var slowEC2Case = Case{
	Name:  "slow-ec2",
	About: "CreateFleet takes 5 s, or is throttled: pods that fit existing nodes schedule at 90 % of the rate without it",
	Run:   runSlowEC2,
}

// fitting pods are measured while needing pods wait for machines.
const fitting, needing = 200, 5

func runSlowEC2(ctx context.Context, t *Trial) error {
	if err := t.Start(ctx); err != nil {
		return err
	}
	if err := t.Buyable(ctx); err != nil {
		return err
	}
	if err := t.waitBuyable(ctx); err != nil {
		return err
	}
	if err := t.AddNode(ctx, "existing", "100"); err != nil {
		return err
	}
	// The first round warms up everything, and does not count.
	if _, err := t.fitRound(ctx, "warm-up"); err != nil {
		return err
	}
	rate, err := t.fitRound(ctx, "well")
	if err != nil {
		return err
	}
	for _, fault := range []struct {
		name string
		rule map[string]any
	}{
		{"slow", map[string]any{"action": "CreateFleet", "delay": "5s"}},
		{"throttled", map[string]any{"action": "CreateFleet", "code": "RequestLimitExceeded", "message": "Request limit exceeded."}},
	} {
		if _, err := t.Fake.Fault(ctx, fault.rule); err != nil {
			return err
		}
		ill, err := t.fitRound(ctx, fault.name)
		if err != nil {
			return err
		}
		if err := t.Fake.ClearFaults(ctx); err != nil {
			return err
		}
		t.Judge.AddGoal(judge.Goal{
			Name: "pods that fit, EC2 " + fault.name, Value: ill, Want: 0.9 * rate, Unit: "pods/s", Floor: rate, AtLeast: true,
		})
	}
	return t.Wait(ctx, 90*time.Second, func(v *judge.View) string { return unbound(v, judge.PodSelector{Namespace: t.Namespace}) })
}

// fitRound creates pods that need machines and pods that do not, and returns how many of the latter were bound per
// second.
func (t *Trial) fitRound(ctx context.Context, name string) (float64, error) {
	needs, fits := "needs-"+name, "fits-"+name
	if err := t.Create(ctx, t.Series(needs, needing, "4", onPool("default"), alone)...); err != nil {
		return 0, err
	}
	if err := t.Create(ctx, t.Series(fits, fitting, "50m", onNode("existing"))...); err != nil {
		return 0, err
	}
	if err := t.WaitBound(ctx, fits, fitting, time.Minute); err != nil {
		return 0, fmt.Errorf("EC2 %s: %w", name, err)
	}
	rate := t.Judge.Binding(t.App(fits)).PodsPerSecond
	// Their room goes to the next round.
	var names []string
	for _, pod := range t.Series(fits, fitting, "50m") {
		names = append(names, pod.Name)
	}
	return rate, t.Delete(ctx, names...)
}
