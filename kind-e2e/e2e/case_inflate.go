// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"time"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/judge"
)

var inflateCase = Case{
	Name:  "inflate",
	About: "a Deployment goes 0, 5, 30, 0: its price, nominations before the Node, bound within 1 s of Ready, nothing left",
	Rules: judge.Rules{WantNothingLeft: true},
	Run:   runInflate,
}

func runInflate(ctx context.Context, t *Trial) error {
	if err := t.Start(ctx); err != nil {
		return err
	}
	if err := t.Apply(ctx, "manifests/examples"); err != nil {
		return err
	}
	// The examples wait a minute before an empty machine goes; the rest of the way down is the same.
	if err := t.NodePool(ctx, "default", change{"spec.disruption.consolidateAfter", "5s"}); err != nil {
		return err
	}
	sum, err := t.inflate(ctx, productSteps, true)
	if err != nil {
		return err
	}
	f := t.Judge.Figures(Inflate)
	t.inflateGoals(&f, sum.floor)
	return nil
}

// inflateGoals adds what the judge's invariants do not say of the way up.
func (e *Env) inflateGoals(f *judge.Figures, floor time.Duration) {
	e.Judge.AddGoal(judge.Goal{
		Name: "bound after Ready, max", Value: f.BoundAfterReady.Max.Seconds(), Want: 1, Unit: "s", Floor: floor.Seconds(),
	})
	waited := 0
	for _, p := range f.Pods {
		if p.FirstSeen.Before(p.NodeReady) {
			waited++
		}
	}
	e.Judge.AddGoal(judge.Goal{
		Name: "pods nominated before their Node existed", Value: float64(f.NominatedBeforeNode), Want: float64(waited), Unit: "pods",
		AtLeast: true, Exact: true,
	})
}
