// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
)

// yes is a Fitter that costs nothing: what remains is the planner's own time.
type yes struct{}

func (y *yes) Ready(*Class, int) int { return 0 }
func (y *yes) Fit(_ *v1.Pod, nodes []string) []Verdict {
	out := make([]Verdict, len(nodes))
	for i := range out {
		out[i].Fits = true
	}
	return out
}
func (y *yes) Place(string, ...*v1.Pod)             {}
func (y *yes) Candidates(c []Candidate) [][]*v1.Pod { return make([][]*v1.Pod, len(c)) }
func (y *yes) Open(string, string)                  {}

func fiveClasses() []*v1.Pod {
	return slices.Concat(
		copies(400, podOf("a", "cpu=500m", "memory=1Gi")), copies(400, podOf("b", "cpu=2", "memory=2Gi")),
		copies(400, podOf("c", "cpu=1", "memory=8Gi")), copies(400, podOf("d", "cpu=250m", "memory=512Mi")),
		copies(400, podOf("e", "cpu=4", "memory=4Gi")))
}

func BenchmarkPlan(b *testing.B) {
	types := realTypes(b)
	few := types[:200] // in three zones: 600 candidates
	spreadPods := copies(300, podOf("s", "cpu=1"), spreadOver(v1.LabelTopologyZone, 1))
	for name, bc := range map[string]struct {
		pool Pool
		pods []*v1.Pod
	}{
		"2000 pods, 5 classes, 600 candidates":  {defaultPool(few, nil), fiveClasses()},
		"2000 pods, 5 classes, 2142 candidates": {defaultPool(types, nil), fiveClasses()},
		"5 pods, 2142 candidates":               {defaultPool(types, nil), copies(5, podOf("a", "cpu=1"))},
		"1000 pods at a limit":                  {defaultPool(types, v1.ResourceList{"cpu": quantity("1000")}), copies(1000, podOf("a", "cpu=1"))},
		"300 spread pods":                       {defaultPool(types, nil), spreadPods},
	} {
		b.Run(name, func(b *testing.B) {
			s := Snapshot{Pools: []Pool{bc.pool}, Classes: Classes(bc.pods), MaxTypes: 60}
			b.ReportAllocs()
			for b.Loop() {
				Plan(s, &yes{})
			}
		})
	}
}

func BenchmarkClasses(b *testing.B) {
	pods := fiveClasses()
	b.ReportAllocs()
	for b.Loop() {
		Classes(pods)
	}
}
