// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"strconv"
	"strings"
)

const flushMetric = "scheduler_pod_scheduled_after_flush_total"

// flushed: no pod needed the five-minute flush of the unschedulable pods to
// be scheduled. Judged from the metric texts that were given; each must have it.
type flushed struct {
	noStep

	in *input
}

func newFlushMetric(in *input) invariant { return &flushed{in: in} }

func (f *flushed) finish(_ *world, report reporter) {
	for _, text := range f.in.metrics {
		value, found := metricSum(text, flushMetric)
		switch {
		case !found:
			report(f.in.end, flushMetric, "not among the metrics that were given")
		case value != 0:
			report(f.in.end, flushMetric, "is %v, want 0", value)
		}
	}
}

// metricSum adds up the samples of a metric in Prometheus's text format.
func metricSum(text, name string) (sum float64, found bool) {
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), name)
		if !ok {
			continue
		}
		if strings.HasPrefix(rest, "{") {
			_, rest, ok = strings.Cut(rest, "} ")
		} else {
			rest, ok = strings.CutPrefix(rest, " ")
		}
		fields := strings.Fields(rest)
		if !ok || len(fields) == 0 {
			continue
		}
		value, err := strconv.ParseFloat(fields[0], 64)
		if err != nil {
			continue
		}
		sum, found = sum+value, true
	}
	return sum, found
}
