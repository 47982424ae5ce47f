// SPDX-License-Identifier: Apache-2.0

package judge

// watchGap: the judge saw everything. A run of which it missed a part did not pass.
type watchGap struct {
	noStep

	in *input
}

func newWatchGap(in *input) invariant { return &watchGap{in: in} }

func (g *watchGap) finish(_ *world, report reporter) {
	for _, gap := range g.in.gaps {
		report(gap.time, gap.source, "%s", gap.reason)
	}
}
