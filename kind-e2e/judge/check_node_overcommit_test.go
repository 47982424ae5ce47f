// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestNodeOvercommit(t *testing.T) {
	t.Parallel()
	always := corev1.ContainerRestartPolicyAlways
	cpu := func(amount string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.Containers[0].Resources = requests(amount, "") }
	}
	bind := func(s *scenario, name string, change ...func(*corev1.Pod)) {
		s.pod(pod(name, change...)).pod(pod(name, append(change, on("n1"))...))
	}
	testInvariant(t, "node-overcommit", map[string]invariantCase{
		"full to the brim": {run: func(s *scenario) {
			s.node(node("n1"))
			bind(s, "a", cpu("3"))
			bind(s, "b", cpu("1"))
		}},
		"one CPU too many": {
			run: func(s *scenario) {
				s.node(node("n1"))
				bind(s, "a", cpu("3"))
				bind(s, "b", cpu("2"))
			},
			want: []string{"n1: cpu: 5000m requested of 4000m allocatable, 2 pods, after pod default/b (resourceVersion 5)"},
		},
		"over for a moment only, reported once": {
			run: func(s *scenario) {
				s.node(node("n1"))
				bind(s, "a", cpu("3"))
				bind(s, "b", cpu("2"))
				s.pod(pod("b", cpu("2"), on("n1"), phase(corev1.PodRunning, "")))
				s.podGone(pod("b", cpu("2"), on("n1")))
			},
			want: []string{"n1: cpu: 5000m requested of 4000m allocatable, 2 pods, after pod default/b (resourceVersion 5)"},
		},
		"a deleted pod makes room": {run: func(s *scenario) {
			s.node(node("n1"))
			bind(s, "a", cpu("3"))
			s.podGone(pod("a", cpu("3"), on("n1")))
			bind(s, "b", cpu("4"))
		}},
		"a finished pod makes room": {run: func(s *scenario) {
			s.node(node("n1"))
			bind(s, "a", cpu("3"))
			s.pod(pod("a", cpu("3"), on("n1"), phase(corev1.PodSucceeded, "")))
			bind(s, "b", cpu("4"))
		}},
		"a terminating pod does not": {
			run: func(s *scenario) {
				s.node(node("n1"))
				bind(s, "a", cpu("3"))
				s.pod(pod("a", cpu("3"), on("n1"), func(p *corev1.Pod) { p.DeletionTimestamp = &p.CreationTimestamp }))
				bind(s, "b", cpu("4"))
			},
			want: []string{"n1: cpu: 7000m requested of 4000m allocatable, 2 pods, after pod default/b (resourceVersion 6)"},
		},
		"the node shrinks": {
			run: func(s *scenario) {
				s.node(node("n1"))
				bind(s, "a", cpu("4"))
				s.node(node("n1", allocatable(corev1.ResourceCPU, "3920m")))
			},
			want: []string{"n1: cpu: 4000m requested of 3920m allocatable, 1 pods, after its own update (resourceVersion 4)"},
		},
		"too many pods": {
			run: func(s *scenario) {
				s.node(node("n1", allocatable(corev1.ResourcePods, "2")))
				for i := range 3 {
					bind(s, strconv.Itoa(i), cpu("100m"))
				}
			},
			want: []string{"n1: pods: 3 requested of 2 allocatable, 3 pods, after pod default/2 (resourceVersion 7)"},
		},
		"an extended resource that the node lacks": {
			run: func(s *scenario) {
				s.node(node("n1"))
				bind(s, "a", func(p *corev1.Pod) {
					p.Spec.Containers[0].Resources.Requests["nvidia.com/gpu"] = resource.MustParse("1")
				})
			},
			want: []string{"n1: nvidia.com/gpu: 1 requested of 0 allocatable, 1 pods, after pod default/a (resourceVersion 3)"},
		},
		"overhead and sidecar add up, an init container counts by its maximum": {
			run: func(s *scenario) {
				s.node(node("n1"))
				bind(s, "fits", cpu("1"), func(p *corev1.Pod) {
					p.Spec.InitContainers = []corev1.Container{
						{Name: "sidecar", RestartPolicy: &always, Resources: requests("1", "")},
						{Name: "init", Resources: requests("2", "")},
					}
					p.Spec.Overhead = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
				})
				bind(s, "straw", cpu("1m"))
			},
			want: []string{"n1: cpu: 4001m requested of 4000m allocatable, 2 pods, after pod default/straw (resourceVersion 5)"},
		},
		"memory": {
			run: func(s *scenario) {
				s.node(node("n1"))
				bind(s, "a", func(p *corev1.Pod) { p.Spec.Containers[0].Resources = requests("1", "9Gi") })
			},
			want: []string{"n1: memory: 9663676416 requested of 8589934592 allocatable, 1 pods, after pod default/a (resourceVersion 3)"},
		},
		"other nodes are not blamed": {run: func(s *scenario) {
			s.node(node("n1")).node(node("n2"))
			bind(s, "a", cpu("4"))
			s.pod(pod("b", cpu("4"))).pod(pod("b", cpu("4"), on("n2")))
		}},
	})
}
