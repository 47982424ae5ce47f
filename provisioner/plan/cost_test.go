// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
)

func TestCostOnTheRealCatalogue(t *testing.T) {
	t.Parallel()
	types := realTypes(t)
	tests := map[string]struct {
		pods      []*v1.Pod
		wantUSD   float64 // at most
		wantNodes int     // 0: any
	}{
		"5 x 1 CPU on one machine": {pods: copies(5, podOf("a", "cpu=1")), wantUSD: 0.306, wantNodes: 1},
		"23 x 1 CPU":               {pods: copies(23, podOf("a", "cpu=1")), wantUSD: 0.9945},
		"1000 x 1 CPU 1 GiB":       {pods: copies(1000, podOf("a", "cpu=1", "memory=1Gi")), wantUSD: 38.36 * 1.05},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := Snapshot{Pools: []Pool{defaultPool(types, nil)}, Classes: Classes(tc.pods), MaxTypes: 60}
			f := newSimple()
			r := Plan(s, f)
			check(t, s, r)
			if len(r.Unplaced) > 0 {
				t.Fatalf("unplaced: %+v", r.Unplaced)
			}
			t.Logf("$%.4f/h: %v", cost(r), shapesOf(r))
			if got := cost(r); got > tc.wantUSD+1e-9 {
				t.Errorf("cost $%.4f/h, want at most $%.4f/h", got, tc.wantUSD)
			}
			if tc.wantNodes > 0 && len(r.Opened) != tc.wantNodes {
				t.Errorf("%d nodes, want %d", len(r.Opened), tc.wantNodes)
			}
		})
	}
}

// TestMixedBeatsLargestFirst compares mixes of CPU-heavy and memory-heavy pods with filling the largest type.
func TestMixedBeatsLargestFirst(t *testing.T) {
	t.Parallel()
	types := realTypes(t)
	tests := map[string]struct {
		pods []*v1.Pod
		lp   float64 // covering LP bound, USD/h, from the same allocatable
		// wantRatio is the most that the plan may cost over the bound.
		wantRatio float64
	}{
		"cpu-heavy and memory-heavy": {wantRatio: 1.03, lp: 18.7881, pods: slices.Concat(
			copies(200, podOf("cpu", "cpu=2", "memory=1Gi")), copies(200, podOf("mem", "cpu=250m", "memory=6Gi")))},
		"five classes": {wantRatio: 1.02, lp: 120.436, pods: slices.Concat(
			copies(400, podOf("a", "cpu=500m", "memory=1Gi")), copies(400, podOf("b", "cpu=2", "memory=2Gi")),
			copies(400, podOf("c", "cpu=1", "memory=8Gi")), copies(400, podOf("d", "cpu=250m", "memory=512Mi")),
			copies(400, podOf("e", "cpu=4", "memory=4Gi")))},
		"small mix": {wantRatio: 1.5, lp: 0.1814, pods: slices.Concat(
			copies(3, podOf("a", "cpu=1", "memory=1Gi")), copies(2, podOf("b", "cpu=500m", "memory=7Gi")))},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := Snapshot{Pools: []Pool{defaultPool(types, nil)}, Classes: Classes(tc.pods), MaxTypes: 60}
			r := Plan(s, newSimple())
			check(t, s, r)
			if len(r.Unplaced) > 0 {
				t.Fatalf("unplaced: %+v", r.Unplaced)
			}
			largest := largestFirst(s)
			t.Logf("$%.4f/h, LP $%.4f/h (%.3f), largest first $%.4f/h: %v", cost(r), tc.lp, cost(r)/tc.lp, largest, shapesOf(r))
			if got := cost(r) / tc.lp; got > tc.wantRatio {
				t.Errorf("%.3f of the LP bound, want at most %.3f", got, tc.wantRatio)
			}
			if got := cost(r); got > largest {
				t.Errorf("cost $%.4f/h, largest first costs $%.4f/h", got, largest)
			}
		})
	}
}
