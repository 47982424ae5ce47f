// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPodLost(t *testing.T) {
	t.Parallel()
	lost := []string{`default/p: not bound, not deleted, and no current reason (nominated node "")`}
	testInvariant(t, "pod-lost", map[string]invariantCase{
		"bound":   {run: func(s *scenario) { s.pod(pod("p")).pod(pod("p", on("n1"))) }},
		"deleted": {run: func(s *scenario) { s.pod(pod("p")).podGone(pod("p")) }},
		"on its way out": {run: func(s *scenario) {
			s.pod(pod("p", func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: epoch} }))
		}},
		"says why in its condition": {run: func(s *scenario) {
			s.pod(pod("p", condition(corev1.PodScheduled, corev1.ConditionFalse, "Unschedulable", "no pool allows arm64")))
		}},
		"a fresh event says why": {run: func(s *scenario) {
			p := pod("p")
			s.pod(p).event(p, "NoCapacity", "limit reached").wait(5 * time.Minute)
		}},
		"silent": {run: func(s *scenario) { s.pod(pod("p")) }, want: lost},
		"a condition without a message says nothing": {
			run: func(s *scenario) {
				s.pod(pod("p", condition(corev1.PodScheduled, corev1.ConditionFalse, "Unschedulable", "")))
			},
			want: lost,
		},
		"an old event says nothing": {
			run: func(s *scenario) {
				p := pod("p")
				s.pod(p).event(p, "NoCapacity", "limit reached").wait(5 * time.Minute)
			},
			rules: Rules{ReasonMaxAge: time.Minute},
			want:  lost,
		},
		"another pod's event says nothing": {
			run:  func(s *scenario) { s.pod(pod("p")).event(pod("q"), "NoCapacity", "limit reached") },
			want: lost,
		},
		"another scheduler's pod is not ours": {run: func(s *scenario) { s.pod(pod("p", byScheduler("default-scheduler"))) }},
		"pod GC took it": {
			run: func(s *scenario) {
				gone := pod("p", on("default-a"), phase(corev1.PodFailed, ""),
					condition(corev1.DisruptionTarget, corev1.ConditionTrue, "DeletionByPodGC", "PodGC: node no longer exists"))
				s.pod(pod("p")).pod(pod("p", on("default-a"))).pod(gone).podGone(gone)
			},
			want: []string{`default/p: deleted by pod GC, its node "default-a" is gone: PodGC: node no longer exists`},
		},
		"evicted": {run: func(s *scenario) {
			gone := pod("p", on("n1"), condition(corev1.DisruptionTarget, corev1.ConditionTrue, "EvictionByEvictionAPI", "drained"))
			s.pod(pod("p", on("n1"))).pod(gone).podGone(gone)
		}},
	})
}

func TestPodFailedAdmission(t *testing.T) {
	t.Parallel()
	testInvariant(t, "pod-failed-admission", map[string]invariantCase{
		"runs":               {run: func(s *scenario) { s.pod(pod("p")).pod(pod("p", on("n1"), phase(corev1.PodRunning, ""))) }},
		"fails by itself":    {run: func(s *scenario) { s.pod(pod("p")).pod(pod("p", on("n1"), phase(corev1.PodFailed, "Error"))) }},
		"evicted by kubelet": {run: func(s *scenario) { s.pod(pod("p", on("n1"), phase(corev1.PodFailed, "Evicted"))) }},
		"OutOfcpu, reported once": {
			run: func(s *scenario) {
				failed := pod("p", on("n1"), phase(corev1.PodFailed, "OutOfcpu"))
				s.pod(pod("p")).pod(failed).pod(failed)
			},
			want: []string{"default/p: refused by the kubelet of n1: OutOfcpu: "},
		},
		"each reason": {
			run: func(s *scenario) {
				s.pod(pod("a", on("n1"), phase(corev1.PodFailed, "OutOfpods")))
				s.pod(pod("b", on("n1"), phase(corev1.PodFailed, "NodeAffinity")))
				s.pod(pod("c", on("n1"), phase(corev1.PodFailed, "TaintToleration")))
				s.pod(pod("d", on("n1"), phase(corev1.PodFailed, "UnexpectedAdmissionError")))
				s.pod(pod("e", on("n1"), daemon, phase(corev1.PodFailed, "OutOfnvidia.com/gpu")))
			},
			want: []string{
				"default/a: refused by the kubelet of n1: OutOfpods: ",
				"default/b: refused by the kubelet of n1: NodeAffinity: ",
				"default/c: refused by the kubelet of n1: TaintToleration: ",
				"default/d: refused by the kubelet of n1: UnexpectedAdmissionError: ",
				"default/e: refused by the kubelet of n1: OutOfnvidia.com/gpu: ",
			},
		},
	})
}
