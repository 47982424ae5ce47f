// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/judge"
)

// Compare runs Karpenter and then the product on the same work, each on a fresh cluster and endpoint, and prints the
// judge's report of both. It fails if either run ends otherwise than the judge accepts.
func Compare(ctx context.Context, out io.Writer) error {
	fmt.Fprintln(out, "=== Karpenter 1.14.1 with kube-scheduler ===")
	karpenter := Proof(ctx, out)
	fmt.Fprintln(out, "\n=== jit-scheduler ===")
	return errors.Join(karpenter, Demo(ctx, out))
}

// Proof is the proof of the ground: the unmodified Karpenter takes inflate 0, 5, 30, 0 on this cluster and this
// endpoint, and the judge passes.
func Proof(ctx context.Context, out io.Writer) (err error) {
	e, err := Start(ctx, Options{Name: "karpenter", SchedulerName: "default-scheduler", Out: out, Rules: judge.Rules{
		Skip: map[string]string{"leftovers": "Karpenter keeps launch templates until its cache expires"},
	}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Stop()) }()
	if err := e.InstallCRDs(ctx); err != nil {
		return err
	}
	p, err := e.StartKarpenter(ctx)
	if err != nil {
		return err
	}
	if err := e.ApplyForDefaultScheduler(ctx); err != nil {
		return err
	}
	if err := e.inflate(ctx, karpenterSteps, MachinesGone); err != nil {
		return fmt.Errorf("%w\n%s", err, p.Tail(30))
	}
	return e.report(ctx)
}
