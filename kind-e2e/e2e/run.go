// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/judge"
)

// RunOptions say which cases run.
type RunOptions struct {
	// Match selects cases by name; nil is all of them.
	Match *regexp.Regexp
	// Product is a binary to test; empty builds this repository's.
	Product string
	// Cluster is the name of the cluster; "e2e" if empty.
	Cluster string
	Out     io.Writer
}

// caseTimeout ends a case that hangs and has no other Timeout.
const caseTimeout = 6 * time.Minute

// tailLines of the product's log are printed when a case fails.
const tailLines = 40

// List prints the cases.
func List(out io.Writer) {
	for _, c := range Cases() {
		fmt.Fprintf(out, "%-20s %s\n", c.Name, c.About)
	}
	fmt.Fprintf(out, "%-20s %s\n", rbacName, "after the cases: who asked the API server for what, and what was refused")
}

// Run runs cases one after another on one cluster and fails if one of them does.
func Run(ctx context.Context, o RunOptions) (err error) {
	selected := selectCases(o.Match)
	if len(selected) == 0 {
		return fmt.Errorf("no case is called %s; -list prints them", o.Match)
	}
	if o.Cluster == "" {
		o.Cluster = "e2e"
	}
	began := time.Now()
	e, ctx, err := startCluster(ctx, o.Cluster, o.Out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Stop()) }()
	if o.Product != "" {
		e.built["jit-scheduler"] = o.Product
	}
	if err := e.installBase(ctx); err != nil {
		return err
	}
	e.Say("cluster %s is up (%s); logs in %s", o.Cluster, time.Since(began).Round(100*time.Millisecond), e.Cluster.Dir)
	failed := 0
	for _, c := range selected {
		if !e.runCase(ctx, c) {
			failed++
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	if !e.checkRBAC(len(selected) == len(Cases())) {
		failed++
	}
	e.Say("\n%d passed, %d failed (%s)", len(selected)+1-failed, failed, time.Since(began).Round(time.Second))
	if failed > 0 {
		return fmt.Errorf("%d cases failed", failed)
	}
	return nil
}

func selectCases(match *regexp.Regexp) []Case {
	var selected []Case
	for _, c := range Cases() {
		if match == nil || match.MatchString(c.Name) {
			selected = append(selected, c)
		}
	}
	return selected
}

// runCase runs one case, prints its line and, if it failed, all there is to know.
func (e *Env) runCase(ctx context.Context, c Case) bool {
	e.Say("=== %s: %s", c.Name, c.About)
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, cmp.Or(c.Timeout, caseTimeout))
	t, report, err := e.try(limited, c)
	cancel()
	took := time.Since(began)
	if err == nil && !report.Passed() {
		err = errViolated
	}
	e.printCase(t, report, err)
	// Not under the case's own deadline, which may have passed.
	if t != nil {
		tidying, cancel := context.WithTimeout(ctx, 2*time.Minute)
		if endErr := t.end(tidying); endErr != nil {
			err = errors.Join(err, fmt.Errorf("removing what the case left: %w", endErr))
			e.Say("%v", endErr)
		}
		cancel()
	}
	verdict := "PASS"
	if err != nil {
		verdict = "FAIL"
	}
	e.Say("--- %s %s (%.1fs, and %.1fs to clean up)", verdict, c.Name, took.Seconds(), (time.Since(began) - took).Seconds())
	return err == nil
}

// try runs a case and has it judged, also if it failed.
func (e *Env) try(ctx context.Context, c Case) (*Trial, *judge.Report, error) {
	if !c.WithoutCRDs {
		if err := e.InstallCRDs(ctx); err != nil {
			return nil, nil, err
		}
	}
	t, err := e.begin(ctx, c)
	if err != nil {
		return t, nil, err
	}
	err = c.Run(ctx, t)
	t.scrape(ctx)
	judging, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	report, judgeErr := t.Judge.Report(judging)
	return t, report, errors.Join(err, judgeErr)
}

// scrape gives the judge the metrics of the last replica, if it serves any.
func (t *Trial) scrape(ctx context.Context) {
	if t.Product == nil {
		return
	}
	if status, text, err := t.get(ctx, t.Product, "/metrics"); err == nil && status == 200 {
		t.Judge.AddMetrics(text)
	}
}

// printCase prints the goals of a case that passed, and everything about one that did not.
func (e *Env) printCase(t *Trial, report *judge.Report, err error) {
	if err == nil {
		for _, g := range report.Goals {
			e.Say("    %s", goalText(g))
		}
		return
	}
	e.Say("%v", err)
	if report != nil {
		e.Say("\nthe judge's report:")
		if err := report.Print(e.Out); err != nil {
			e.Say("%v", err)
		}
	}
	if t == nil {
		return
	}
	for _, p := range t.replicas {
		e.Say("end of %s:\n%s", p.LogPath(), narrow(p.Tail(tailLines)))
	}
}

// goalText is a figure next to its goal and floor in one line.
func goalText(g judge.Goal) string {
	sign := "≤"
	if g.AtLeast {
		sign = "≥"
	}
	text := fmt.Sprintf("%s: %.4g %s (goal %s %.4g", g.Name, g.Value, g.Unit, sign, g.Want)
	if g.Floor != 0 {
		text += fmt.Sprintf(", floor %.4g", g.Floor)
	}
	if !g.Met() {
		text += ", missed"
	}
	return text + ")"
}

// narrow cuts long lines: the file has them whole.
func narrow(text string) string {
	const width = 320
	var out strings.Builder
	for line := range strings.Lines(text) {
		if len(line) > width {
			line = strings.ToValidUTF8(line[:width], "") + "…\n"
		}
		out.WriteString(line)
	}
	return out.String()
}
