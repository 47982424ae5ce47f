// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// TestLimits checks that limits are exact and used to the full: check counts each node as its largest option.
func TestLimits(t *testing.T) {
	t.Parallel()
	types := realTypes(t)
	tests := map[string]struct {
		limits, inUse v1.ResourceList
		pods          []*v1.Pod
		wantPlaced    int // at least
		wantReason    string
	}{
		// 5 x 192 + 40 vCPU hold 5 x 191 + 39 pods of 1 CPU: no other mix within the limit holds more.
		"1000 CPU, 1000 pods": {limits: v1.ResourceList{"cpu": quantity("1000")}, pods: copies(1000, podOf("a", "cpu=1")), wantPlaced: 994, wantReason: "NodePoolLimitReached"},
		"1000 CPU, 8 in use": {
			limits: v1.ResourceList{"cpu": quantity("1000")}, inUse: v1.ResourceList{"cpu": quantity("8")},
			pods: copies(1000, podOf("a", "cpu=1")), wantPlaced: 986, wantReason: "NodePoolLimitReached",
		},
		"enough":                                 {limits: v1.ResourceList{"cpu": quantity("1000")}, pods: copies(900, podOf("a", "cpu=1")), wantPlaced: 900},
		"tight, but enough with larger machines": {limits: v1.ResourceList{"cpu": quantity("1000")}, pods: copies(990, podOf("a", "cpu=1")), wantPlaced: 990},
		"memory":                                 {limits: v1.ResourceList{"memory": quantity("100Gi")}, pods: copies(100, podOf("a", "cpu=1", "memory=1Gi")), wantPlaced: 57, wantReason: "NodePoolLimitReached"},
		"nodes":                                  {limits: v1.ResourceList{"nodes": quantity("2")}, pods: copies(1000, podOf("a", "cpu=1")), wantPlaced: 764, wantReason: "NodePoolLimitReached"},
		"CPU and memory":                         {limits: v1.ResourceList{"cpu": quantity("64"), "memory": quantity("100Gi")}, pods: copies(100, podOf("a", "cpu=1", "memory=1Gi")), wantPlaced: 55, wantReason: "NodePoolLimitReached"},
		"two classes": {
			limits: v1.ResourceList{"cpu": quantity("100")}, pods: slices.Concat(copies(50, podOf("a", "cpu=1")), copies(100, podOf("b", "cpu=500m"))),
			wantPlaced: 140, wantReason: "NodePoolLimitReached",
		},
		"spread": {limits: v1.ResourceList{"cpu": quantity("24")}, pods: copies(40, podOf("a", "cpu=1"), spreadOver(v1.LabelTopologyZone, 1)), wantPlaced: 21, wantReason: "NodePoolLimitReached"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := defaultPool(types, tc.limits)
			pool.InUse = tc.inUse
			s := Snapshot{Pools: []Pool{pool}, Classes: Classes(tc.pods), MaxTypes: 60}
			var f Fitter = newSimple()
			if len(tc.pods[0].Spec.TopologySpreadConstraints) == 0 {
				f = &yes{}
			}
			r := Plan(s, f)
			check(t, s, r)
			placed := len(tc.pods) - unplaced(r)
			t.Logf("%d placed, $%.3f/h, %v", placed, cost(r), shapesOf(r))
			if placed < tc.wantPlaced {
				t.Errorf("%d pods placed, want at least %d: %s", placed, tc.wantPlaced, messagesOf(r))
			}
			for _, u := range r.Unplaced {
				t.Log(u.Message)
				if u.Reason != tc.wantReason {
					t.Errorf("reason %s, want %s", u.Reason, tc.wantReason)
				}
			}
		})
	}
}
