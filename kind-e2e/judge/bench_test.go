// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// bigRun takes n pods through their whole life, 8 on a machine.
func bigRun(n int) *scenario {
	s := newScenario()
	small := func(p *corev1.Pod) { p.Spec.Containers[0].Resources = requests("500m", "1Gi") }
	for machine := range n / 8 {
		name := fmt.Sprintf("n%d", machine)
		s.claim(claimOn("c-"+name, "")).instance(instanceOf("c-"+name, name)).claim(claimOn("c-"+name, name)).node(node(name))
		for i := range 8 {
			p := fmt.Sprintf("p%d-%d", machine, i)
			s.pod(pod(p, small)).pod(pod(p, small, nominated("c-"+name))).pod(pod(p, small, on(name)))
			s.pod(pod(p, small, on(name), phase(corev1.PodRunning, ""))).podGone(pod(p, small, on(name)))
		}
	}
	return s
}

func BenchmarkReport(b *testing.B) {
	for _, n := range []int{1000, 10000} {
		b.Run(fmt.Sprintf("%dpods", n), func(b *testing.B) {
			s := bigRun(n)
			b.ReportAllocs()
			for b.Loop() {
				r := newReport(s.State, s.now, Rules{Limits: map[string]float64{"default": 1e6}}, nil)
				if len(r.Violations) != 0 {
					b.Fatalf("violations are %v", r.Violations)
				}
			}
		})
	}
}

func BenchmarkView(b *testing.B) {
	s := newScenario()
	for i := range 10000 {
		s.pod(pod(fmt.Sprintf("p%d", i)))
	}
	app := PodSelector{Labels: map[string]string{"app": "inflate"}}
	b.ReportAllocs()
	for b.Loop() {
		if got := s.View(s.now.Add(time.Second)).Count(app).Total; got != 10000 {
			b.Fatalf("%d pods", got)
		}
	}
}
