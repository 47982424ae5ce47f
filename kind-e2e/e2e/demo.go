// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/judge"
)

// Demo shows the main job: the examples' Deployment goes 0, 5, 30, 0 on machines that did not exist. It prints the
// judge's table and fails if the judge does.
func Demo(ctx context.Context, out io.Writer) (err error) {
	e, err := Start(ctx, Options{Name: "demo", SchedulerName: "jit-scheduler", Out: out, Rules: judge.Rules{WantNothingLeft: true}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Stop()) }()
	if err := e.Install(ctx); err != nil {
		return err
	}
	p, err := e.StartProduct(ctx, "jit-scheduler")
	if err != nil {
		return err
	}
	if err := e.Apply(ctx, "manifests/examples"); err != nil {
		return err
	}
	e.Say("jit-scheduler runs; its log is %s", p.LogPath())
	if err := e.inflate(ctx, productSteps, (*judge.View).NothingLeft); err != nil {
		return fmt.Errorf("%w\n%s", err, p.Tail(30))
	}
	return e.report(ctx)
}

// step is one size of the Deployment, with what it may cost and how many NodeClaims it may have; 0: not asked.
type step struct {
	replicas int
	usd      float64
	claims   int
}

// productSteps are the goals of the product; karpenterSteps leave price and count to Karpenter.
var (
	productSteps   = []step{{5, 0.306, 1}, {30, 1.45, 0}, {0, 0, 0}}
	karpenterSteps = []step{{5, 0, 0}, {30, 0, 0}, {0, 0, 0}}
)

// inflate takes the Deployment through the steps, with marks for the judge, until gone says that all is away.
func (e *Env) inflate(ctx context.Context, steps []step, gone func(*judge.View) bool) error {
	for _, step := range steps {
		if err := e.Scale(ctx, step.replicas, 2*time.Minute); err != nil {
			return err
		}
		e.Judge.Mark(fmt.Sprintf("inflate %d", step.replicas))
		v := e.Judge.View()
		if step.usd > 0 {
			e.Judge.AddGoal(judge.Goal{Name: fmt.Sprintf("price at %d", step.replicas), Value: v.USDPerHour(), Want: step.usd, Unit: "USD/h", Exact: true})
		}
		if step.claims > 0 {
			e.Judge.AddGoal(judge.Goal{Name: fmt.Sprintf("NodeClaims at %d", step.replicas), Value: float64(len(v.Claims)), Want: float64(step.claims), Exact: true})
		}
	}
	if err := e.WaitNothingLeft(ctx, gone, 6*time.Minute); err != nil {
		return err
	}
	e.Judge.Mark("nothing left")
	return nil
}

// errViolated is what a run ends with that the judge does not accept; the report says why.
var errViolated = errors.New("the judge found violations")

// report prints the judge's report.
func (e *Env) report(ctx context.Context) error {
	f := e.Judge.Figures(Inflate)
	e.Judge.AddGoal(judge.Goal{Name: "bound after Ready, max", Value: f.BoundAfterReady.Max.Seconds(), Want: 1, Unit: "s"})
	r, err := e.Judge.Report(ctx)
	if err != nil {
		return err
	}
	if err := r.Print(e.Out); err != nil {
		return err
	}
	if !r.Passed() {
		return errViolated
	}
	return nil
}
