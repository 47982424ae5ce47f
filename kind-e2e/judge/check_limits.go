// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"cmp"
	"slices"
	"time"
)

// limits: the vCPU of all claims of a pool never exceed Rules.Limits. A claim
// counts from when it was seen until it and its instance are gone: first with
// its status.capacity or requests, from the launch with its instance's vCPU.
// An instance without a claim counts for the pool in its tag.
type limits struct {
	noStep

	in *input
}

func newLimits(in *input) invariant { return &limits{in: in} }

// vcpuStep is one change of a pool's sum.
type vcpuStep struct {
	time  time.Time
	delta float64
	what  string
}

func (l *limits) finish(_ *world, report reporter) {
	steps := l.steps()
	for pool, limit := range l.in.rules.Limits {
		ordered := steps[pool]
		// At one instant what goes is taken off first.
		slices.SortStableFunc(ordered, func(a, b vcpuStep) int {
			return cmp.Or(a.time.Compare(b.time), cmp.Compare(a.delta, b.delta))
		})
		sum, over := 0.0, false
		for _, step := range ordered {
			sum += step.delta
			if sum > limit+1e-6 && !over {
				report(step.time, pool, "%.4g vCPU of %.4g with %s", sum, limit, step.what)
			}
			over = sum > limit+1e-6
		}
	}
}

func (l *limits) steps() map[string][]vcpuStep {
	steps := map[string][]vcpuStep{}
	add := func(pool, what string, vcpus float64, from, to time.Time) {
		if vcpus == 0 || (!to.IsZero() && !from.Before(to)) {
			return
		}
		steps[pool] = append(steps[pool], vcpuStep{time: from, delta: vcpus, what: what})
		if !to.IsZero() {
			steps[pool] = append(steps[pool], vcpuStep{time: to, delta: -vcpus, what: what})
		}
	}
	launched := map[string]time.Time{} // claim → launch of its first instance
	for _, instance := range l.in.instancesByLaunch() {
		pool := instance.Tags[labelNodePool]
		if claim := l.in.links.claimOfInstance[instance.ID]; claim != "" {
			if life, ok := l.in.links.claims[claim]; ok {
				pool = life.first.Pool()
			}
			if _, ok := launched[claim]; !ok {
				launched[claim] = instance.LaunchedAt.Time
			}
		}
		add(pool, "instance "+instance.ID, instance.VCPUs, instance.LaunchedAt.Time, instance.TerminatedAt.Time)
	}
	for name, life := range l.in.links.claims {
		until := life.deleted
		if at, ok := launched[name]; ok {
			until = at
		}
		add(life.first.Pool(), "NodeClaim "+name, life.first.vcpus(), life.seen, until)
	}
	return steps
}
