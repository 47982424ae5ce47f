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
func Demo(ctx context.Context, out io.Writer) error {
	_, err := demo(ctx, "demo", out)
	return err
}

// demo is Demo on a cluster of that name; the summary is nil if the run did not get to its end.
func demo(ctx context.Context, cluster string, out io.Writer) (sum *summary, err error) {
	e, err := Start(ctx, Options{Name: cluster, SchedulerName: "jit-scheduler", Out: out, Rules: judge.Rules{WantNothingLeft: true}})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.Stop()) }()
	if err := e.Install(ctx); err != nil {
		return nil, err
	}
	p, err := e.StartProduct(ctx, "jit-scheduler")
	if err != nil {
		return nil, err
	}
	if err := e.Apply(ctx, "manifests/examples"); err != nil {
		return nil, err
	}
	e.Say("jit-scheduler runs; its log is %s", p.LogPath())
	sum, err = e.inflate(ctx, productSteps, true)
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, p.Tail(tailLines))
	}
	f := e.Judge.Figures(Inflate)
	e.inflateGoals(&f, sum.floor)
	return sum, errors.Join(e.report(ctx), sum.print(out))
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

// inflate takes the Deployment through the steps, with marks for the judge, until everything that was bought is away.
// ours is for the product: the floor is measured before the nodes go, and launch templates have to go as well.
func (e *Env) inflate(ctx context.Context, steps []step, ours bool) (*summary, error) {
	var sum summary
	for _, step := range steps {
		began := time.Now()
		if err := e.Scale(ctx, step.replicas, 2*time.Minute); err != nil {
			return nil, err
		}
		done := stepDone(e.Judge, step.replicas, began)
		sum.steps = append(sum.steps, done)
		e.stepGoals(step, done)
	}
	if ours {
		f, err := e.inflateFloor(ctx, steps[len(steps)-2].replicas)
		if err != nil {
			return nil, err
		}
		sum.floor = f.Latency.Median
	}
	began := time.Now()
	if err := e.WaitGone(ctx, "machine", MachinesGone, 6*time.Minute); err != nil {
		return nil, err
	}
	sum.gone = time.Since(began)
	e.Judge.Mark("machines gone")
	if ours {
		if err := e.WaitGone(ctx, "launch template", (*judge.View).NothingLeft, 6*time.Minute); err != nil {
			return nil, err
		}
		e.Judge.Mark("nothing left")
	}
	return &sum, nil
}

// stepGoals marks the step and holds it to its price and count.
func (e *Env) stepGoals(step step, done stepSummary) {
	e.Judge.Mark(fmt.Sprintf("inflate %d", step.replicas))
	goal := func(name string, value, want float64, unit string) {
		if want > 0 {
			e.Judge.AddGoal(judge.Goal{Name: fmt.Sprintf("%s at %d", name, step.replicas), Value: value, Want: want, Unit: unit, Exact: true})
		}
	}
	goal("price", done.usd, step.usd, "USD/h")
	goal("NodeClaims", float64(done.claims), float64(step.claims), "")
}

// errViolated is what a run ends with that the judge does not accept; the report says why.
var errViolated = errors.New("the judge found violations")

// report prints the judge's report.
func (e *Env) report(ctx context.Context) error {
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
