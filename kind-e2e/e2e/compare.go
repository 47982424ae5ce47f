// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/judge"
)

// Compare runs Karpenter and then the product on the same work, each on a fresh cluster and endpoint, and prints the
// judge's report of both and a table of both side by side. It fails if either run ends otherwise than the judge accepts.
func Compare(ctx context.Context, out io.Writer) error {
	fmt.Fprintln(out, "=== Karpenter 1.14.1 with kube-scheduler ===")
	karpenter, karpenterErr := proof(ctx, out)
	fmt.Fprintln(out, "\n=== jit-scheduler ===")
	product, productErr := demo(ctx, "compare", out)
	var err error
	if karpenter != nil && product != nil {
		err = printBoth(out, karpenter, product)
	}
	return errors.Join(karpenterErr, productErr, err)
}

// Proof is the proof of the ground: the unmodified Karpenter takes inflate 0, 5, 30, 0 on this cluster and this
// endpoint, and the judge passes.
func Proof(ctx context.Context, out io.Writer) error {
	_, err := proof(ctx, out)
	return err
}

func proof(ctx context.Context, out io.Writer) (sum *summary, err error) {
	e, err := Start(ctx, Options{Name: "karpenter", SchedulerName: defaultScheduler, Out: out, Rules: judge.Rules{
		Skip: map[string]string{"leftovers": "Karpenter keeps launch templates until its cache expires"},
	}})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.Stop()) }()
	if err := e.InstallCRDs(ctx); err != nil {
		return nil, err
	}
	p, err := e.StartKarpenter(ctx)
	if err != nil {
		return nil, err
	}
	if err := e.ApplyForDefaultScheduler(ctx); err != nil {
		return nil, err
	}
	sum, err = e.inflate(ctx, karpenterSteps, false)
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, p.Tail(tailLines))
	}
	return sum, errors.Join(e.report(ctx), sum.print(out))
}

// printBoth prints the two runs side by side.
func printBoth(out io.Writer, karpenter, product *summary) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	row := func(name string, of func(*summary) string) {
		fmt.Fprintf(w, "%s\t%s\t%s\n", name, of(karpenter), of(product))
	}
	fmt.Fprintf(w, "\nMEDIAN / MAXIMUM\tKARPENTER 1.14.1\tJIT-SCHEDULER\n")
	for i, step := range product.steps {
		if step.replicas == 0 {
			continue
		}
		at := func(of func(*stepSummary) string) func(*summary) string {
			return func(s *summary) string { return of(&s.steps[i]) }
		}
		prefix := fmt.Sprintf("%d pods: ", step.replicas)
		row(prefix+"all bound after", at(func(s *stepSummary) string { return seconds(s.took) }))
		row(prefix+"$/h", at(func(s *stepSummary) string { return fmt.Sprintf("%.4f", s.usd) }))
		row(prefix+"NodeClaims", at(func(s *stepSummary) string { return fmt.Sprint(s.claims) }))
		row(prefix+"types", at(func(s *stepSummary) string { return typesText(s.types) }))
		row(prefix+"first pod → NodeClaim", at(func(s *stepSummary) string { return spread(s.decided) }))
		row(prefix+"first pod → CreateFleet", at(func(s *stepSummary) string { return spread(s.launched) }))
		row(prefix+"pod → bound", at(func(s *stepSummary) string { return spread(s.bound) }))
		row(prefix+"node Ready → bound", at(func(s *stepSummary) string { return spread(s.ready) }))
	}
	row("0 pods: machines gone after", func(s *summary) string { return seconds(s.gone) })
	return w.Flush()
}
