// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/judge"
)

// summary is what a run of inflate came to.
type summary struct {
	steps []stepSummary
	// gone is how long it took, after the last pod, until no machine, Node or NodeClaim was left.
	gone time.Duration
	// floor is how long the default scheduler takes to bind such a pod to a ready node (median), 0 if not measured.
	floor time.Duration
}

// stepSummary is the state when a step was done, and how long the pods that came with it waited.
type stepSummary struct {
	replicas int
	took     time.Duration // from the request to the last pod bound or gone
	claims   int
	types    map[string]int
	usd      float64
	// decided and launched are from the step's first pod to each NodeClaim, and to the CreateFleet call for that; bound
	// is from each pod's first appearance to its binding.
	decided, launched, bound []time.Duration
	// ready is from a node's readiness to the binding of the pods that waited for it.
	ready []time.Duration
}

// stepDone reads the step off the judge.
func stepDone(j *judge.Judge, replicas int, began time.Time) stepSummary {
	v, f := j.View(), j.Figures(Inflate)
	s := stepSummary{replicas: replicas, took: time.Since(began), claims: len(v.Claims), usd: v.USDPerHour(), types: map[string]int{}}
	for _, instance := range v.LiveInstances() {
		s.types[instance.InstanceType]++
	}
	known := map[string]bool{}
	var first time.Time
	for _, p := range f.Pods {
		if p.FirstSeen.Before(began) {
			known[p.NodeClaim] = true
			continue
		}
		if first.IsZero() {
			first = p.FirstSeen
		}
		if !known[p.NodeClaim] && p.NodeClaim != "" {
			known[p.NodeClaim] = true
			s.decided = append(s.decided, p.ClaimSeen.Sub(first))
			s.launched = append(s.launched, p.CreateFleet.Sub(first))
		}
		if !p.Bound.IsZero() {
			s.bound = append(s.bound, p.Bound.Sub(p.FirstSeen))
			if p.NodeReady.After(p.FirstSeen) {
				s.ready = append(s.ready, p.Bound.Sub(p.NodeReady))
			}
		}
	}
	return s
}

// print writes the table that ends the demo.
func (s *summary) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintf(w, "\nPODS\tNODECLAIMS\tTYPES\t$/H\t→ NODECLAIM\t→ CREATEFLEET\tPOD → BOUND\tREADY → BOUND\tALL DONE\n")
	for _, r := range s.steps {
		fmt.Fprintf(w, "%d\t%d\t%s\t%.4f\t%s\t%s\t%s\t%s\t%s\n", r.replicas, r.claims, typesText(r.types), r.usd,
			spread(r.decided), spread(r.launched), spread(r.bound), spread(r.ready), seconds(r.took))
	}
	fmt.Fprintf(w, "\t0\t-\t0.0000\t\t\t\t\t%s\n", seconds(s.gone))
	if err := w.Flush(); err != nil {
		return err
	}
	floor := ""
	if s.floor > 0 {
		floor = fmt.Sprintf(" Floor: kube-scheduler binds such a pod to a ready node in %s.", seconds(s.floor))
	}
	_, err := fmt.Fprintf(out, "Latencies are median / maximum, the first two from the step's first pod.%s\n", floor)
	return err
}

// typesText is "1 c6a.2xlarge, 2 m5.large".
func typesText(types map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(types)) {
		parts = append(parts, fmt.Sprintf("%d %s", types[name], name))
	}
	return cmp.Or(strings.Join(parts, ", "), "-")
}

// spread is median / maximum.
func spread(durations []time.Duration) string {
	if len(durations) == 0 {
		return "-"
	}
	sorted := slices.Sorted(slices.Values(durations))
	return fmt.Sprintf("%s / %s", seconds(sorted[len(sorted)/2]), seconds(sorted[len(sorted)-1]))
}

func seconds(d time.Duration) string {
	switch {
	case d == 0:
		return "-"
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	default:
		return d.Round(10 * time.Millisecond).String()
	}
}
