// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Report is the verdict on a run.
type Report struct {
	SchedulerName string            `json:"schedulerName"`
	Time          time.Time         `json:"time"`
	Observations  int               `json:"observations"`
	Judged        []string          `json:"judged"`              // names of the invariants
	NotJudged     map[string]string `json:"notJudged,omitempty"` // name → why not
	Violations    []Violation       `json:"violations"`
	Goals         []Goal            `json:"goals,omitempty"`
	Figures       Figures           `json:"figures"`
}

// Report reads the fake once more, waits until the watches have shown what the
// API server has now (at most 5 s; what they then lack is a violation of
// watch-gap), and judges everything so far. It may be called more than once,
// and before Stop. An error means that there is no verdict.
func (j *Judge) Report(ctx context.Context) (*Report, error) {
	if j.poller != nil {
		if err := j.poller.once(ctx); err != nil {
			return nil, fmt.Errorf("judging: %w", err)
		}
	}
	for _, s := range j.streams {
		if err := s.caughtUp(ctx, 5*time.Second); err != nil {
			if ctx.Err() != nil {
				return nil, fmt.Errorf("judging: %w", err)
			}
			j.gap(s.name, err.Error())
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return newReport(j.state, time.Now(), j.rules, j.goals), nil
}

func newReport(s *State, end time.Time, rules Rules, goals []Goal) *Report {
	report := &Report{
		SchedulerName: s.schedulerName,
		Time:          end,
		Observations:  len(s.journal),
		NotJudged:     s.notJudged(rules),
		Violations:    s.Check(end, rules),
		Goals:         slices.Clone(goals),
		Figures:       s.Figures(end, PodSelector{SchedulerName: s.schedulerName}),
	}
	for name := range invariants {
		if _, not := report.NotJudged[name]; !not {
			report.Judged = append(report.Judged, name)
		}
	}
	slices.Sort(report.Judged)
	for _, goal := range goals {
		if goal.Failed() {
			report.Violations = append(report.Violations, Violation{
				Invariant: "goal", Time: end, Subject: goal.Name,
				Message: fmt.Sprintf("%.4g %s, wanted %s (floor %.4g)", goal.Value, goal.Unit, goal.wanted(), goal.Floor),
			})
		}
	}
	return report
}

// Passed reports whether there is no violation.
func (r *Report) Passed() bool { return len(r.Violations) == 0 }

// JSON writes the report, with every pod's times.
func (r *Report) JSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(r); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// Print writes the report as aligned text.
func (r *Report) Print(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	r.printFigures(table)
	r.printMarks(table)
	r.printGoals(table)
	r.printVerdict(table)
	if err := table.Flush(); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

func (r *Report) printFigures(w io.Writer) {
	f := &r.Figures
	row := func(name, format string, args ...any) { fmt.Fprintf(w, name+"\t"+format+"\n", args...) }
	row("pods of "+r.SchedulerName, "%d, bound %d (%.4g/s), nominated %d, before the Node existed %d",
		f.Binding.Pods, f.Binding.Bound, f.Binding.PodsPerSecond, f.Nominated, f.NominatedBeforeNode)
	row("NodeClaims", "%d", f.Claims)
	row("instances", "%d: %s", f.Instances, countText(f.InstanceTypes))
	row("peak", "$%.4f/h, %.4g vCPU", f.PeakUSDPerHour, f.PeakVCPUs)
	row("at the end", "$%.4f/h, $%.4f spent", f.USDPerHourAtEnd, f.TotalUSD)
	if f.FirstFleetAfterPod > 0 {
		row("pod → CreateFleet, first", "%s", round(f.FirstFleetAfterPod))
	}
	row("pod → CreateFleet, lone pods", "%s", f.FleetAfterPod)
	row("pod → nominated", "%s", f.NominatedAfterPod)
	row("pod → NodeClaim", "%s", f.ClaimAfterPod)
	row("node Ready → bound", "%s", f.BoundAfterReady)
	row("pod → bound, new nodes", "%s", f.BoundAfterPod)
	row("pod → bound, all", "%s", f.Binding.Latency)
	row("AWS calls", "%s", countText(f.Calls))
	row("most within 1 s", "%s", countText(f.PeakCalls))
}

func (r *Report) printMarks(w io.Writer) {
	if len(r.Figures.Marks) == 0 {
		return
	}
	fmt.Fprintf(w, "\nMARK\tAFTER\t$/H\tINSTANCES\tNODECLAIMS\tBOUND\tPODS/S\n")
	for _, m := range r.Figures.Marks {
		fmt.Fprintf(w, "%s\t%s\t%.4f\t%d\t%d\t%d\t%.4g\n",
			m.Name, round(m.Since), m.USDPerHour, m.Instances, m.Claims, m.Bound, m.PodsPerSecond)
	}
}

func (r *Report) printGoals(w io.Writer) {
	if len(r.Goals) == 0 {
		return
	}
	fmt.Fprintf(w, "\nFIGURE\tVALUE\tGOAL\tFLOOR\tVERDICT\n")
	for _, g := range r.Goals {
		floor := "-"
		if g.Floor != 0 {
			floor = fmt.Sprintf("%.4g %s", g.Floor, g.Unit)
		}
		fmt.Fprintf(w, "%s\t%.4g %s\t%s\t%s\t%s\n", g.Name, g.Value, g.Unit, g.wanted(), floor, g.verdict())
	}
}

// mostViolations is how many of one invariant are printed; JSON has them all.
const mostViolations = 10

func (r *Report) printVerdict(w io.Writer) {
	for _, name := range slices.Sorted(maps.Keys(r.NotJudged)) {
		fmt.Fprintf(w, "\nnot judged: %s: %s", name, r.NotJudged[name])
	}
	if len(r.NotJudged) > 0 {
		fmt.Fprintln(w)
	}
	if r.Passed() {
		fmt.Fprintf(w, "\nPASS: %d invariants hold over %d observations\n", len(r.Judged), r.Observations)
		return
	}
	fmt.Fprintf(w, "\nINVARIANT\tTIME\tSUBJECT\tVIOLATION\n")
	printed := map[string]int{}
	for _, v := range r.Violations {
		if printed[v.Invariant]++; printed[v.Invariant] <= mostViolations {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", v.Invariant, v.Time.UTC().Format("15:04:05.000"), v.Subject, v.Message)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(printed)) {
		if more := printed[name] - mostViolations; more > 0 {
			fmt.Fprintf(w, "%s\t\t\tand %d more\n", name, more)
		}
	}
	fmt.Fprintf(w, "FAIL: %d violations of %d invariants over %d observations\n",
		len(r.Violations), len(printed), r.Observations)
}

// countText is "2 × a, 1 × b", most frequent first.
func countText(counts map[string]int) string {
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	parts := make([]string, 0, len(names))
	for _, name := range names {
		parts = append(parts, fmt.Sprintf("%d × %s", counts[name], name))
	}
	return strings.Join(parts, ", ")
}

// summary is the view in one line, for the error of a wait that failed.
func (v *View) summary(schedulerName string) string {
	pods := v.Count(PodSelector{SchedulerName: schedulerName})
	return fmt.Sprintf("%d pods (%d bound, %d nominated, %d terminating), %d NodeClaims, %d provisioned Nodes, %d instances, %d launch templates, $%.4f/h",
		pods.Total, pods.Bound, pods.Nominated, pods.Terminating, len(v.Claims), v.ProvisionedNodes(),
		len(v.LiveInstances()), len(v.LaunchTemplates), v.USDPerHour())
}
