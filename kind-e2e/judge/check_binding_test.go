// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func TestBindBeforeReady(t *testing.T) {
	t.Parallel()
	bind := func(s *scenario, change ...func(*corev1.Pod)) {
		s.pod(pod("p", change...)).pod(pod("p", append(change, on("n1"))...))
	}
	testInvariant(t, "bind-before-ready", map[string]invariantCase{
		"after Ready": {run: func(s *scenario) {
			s.node(node("n1", notReady)).node(node("n1"))
			bind(s)
		}},
		"Ready once, not now": {run: func(s *scenario) {
			s.node(node("n1")).node(node("n1", notReady))
			bind(s)
		}},
		"before Ready": {
			run: func(s *scenario) {
				s.node(node("n1", notReady))
				bind(s)
				s.node(node("n1"))
			},
			want: []string{"default/p: bound to n1 before it was Ready (resourceVersion 3)"},
		},
		"a new node of an old name": {
			run: func(s *scenario) {
				reborn := node("n1", notReady)
				reborn.UID = "reborn"
				s.node(node("n1")).nodeGone(node("n1")).node(reborn)
				bind(s)
			},
			want: []string{"default/p: bound to n1 before it was Ready (resourceVersion 5)"},
		},
		"a DaemonSet pod may": {run: func(s *scenario) {
			s.node(node("n1", notReady))
			bind(s, daemon)
		}},
		"a pod that tolerates not-ready may": {run: func(s *scenario) {
			s.node(node("n1", notReady))
			bind(s, toleration("node.kubernetes.io/not-ready", corev1.TaintEffectNoSchedule))
		}},
		"the toleration that every pod gets does not do": {
			run: func(s *scenario) {
				s.node(node("n1", notReady))
				bind(s, toleration("node.kubernetes.io/not-ready", corev1.TaintEffectNoExecute))
			},
			want: []string{"default/p: bound to n1 before it was Ready (resourceVersion 3)"},
		},
		"to a planned name": {
			run: func(s *scenario) {
				s.claim(claimOn("n1", ""))
				bind(s)
			},
			want: []string{"default/p: bound to n1, which is no node (resourceVersion 3)"},
		},
		"to a planned name, a DaemonSet pod": {
			run:  func(s *scenario) { bind(s, daemon) },
			want: []string{"default/p: bound to n1, which is no node (resourceVersion 2)"},
		},
		"to a node that just went": {run: func(s *scenario) {
			s.pod(pod("p")).node(node("n1")).nodeGone(node("n1")).pod(pod("p", on("n1")))
		}},
		"to a node long gone": {
			run: func(s *scenario) {
				s.node(node("n1")).nodeGone(node("n1")).wait(time.Minute)
				bind(s)
			},
			want: []string{"default/p: bound to n1 1m2s after that node was deleted"},
		},
		"bound before the judge came": {run: func(s *scenario) {
			s.Observe(Observation{Time: s.now, Op: Added, Listed: true, Pod: pod("p", on("n1"))})
			s.pod(pod("q", on("n1")))
		}},
	})
}

func TestHeldRoomStolen(t *testing.T) {
	t.Parallel()
	other := byScheduler("default-scheduler")
	bind := func(s *scenario, change ...func(*corev1.Pod)) {
		s.pod(pod("p", change...)).pod(pod("p", append(change, on("n1"))...))
	}
	testInvariant(t, "held-room-stolen", map[string]invariantCase{
		"after the hold": {run: func(s *scenario) {
			s.node(node("n1", heldNode)).node(node("n1"))
			bind(s, other)
		}},
		"during the hold": {
			run: func(s *scenario) {
				s.node(node("n1", heldNode))
				bind(s, other)
			},
			want: []string{"default/p: of scheduler default-scheduler, bound to n1 while that is held (resourceVersion 3)"},
		},
		"our own pod": {run: func(s *scenario) {
			s.node(node("n1", heldNode))
			bind(s)
		}},
		"a DaemonSet pod": {run: func(s *scenario) {
			s.node(node("n1", heldNode))
			bind(s, daemon)
		}},
		"a pod that tolerates unschedulable": {run: func(s *scenario) {
			s.node(node("n1", heldNode))
			bind(s, other, toleration("node.kubernetes.io/unschedulable", corev1.TaintEffectNoSchedule))
		}},
		"a plain cordon is no hold": {run: func(s *scenario) {
			s.node(node("n1", func(n *corev1.Node) { n.Spec.Unschedulable = true }))
			bind(s, other)
		}},
		"an annotation without a cordon is no hold": {run: func(s *scenario) {
			s.node(node("n1", heldNode, func(n *corev1.Node) { n.Spec.Unschedulable = false }))
			bind(s, other)
		}},
	})
}

func TestSelectedNode(t *testing.T) {
	t.Parallel()
	testInvariant(t, "selected-node", map[string]invariantCase{
		"a node":      {run: func(s *scenario) { s.node(node("n1")).pvc("data", "").pvc("data", "n1") }},
		"a node gone": {run: func(s *scenario) { s.node(node("n1")).pvc("data", "n1").nodeGone(node("n1")).pvc("data", "n1") }},
		"a NodeClaim": {
			run: func(s *scenario) { s.pvc("data", "default-a").pvc("data", "").claim(claimOn("default-a", "")) },
			want: []string{
				"default/data: volume.kubernetes.io/selected-node is default-a: which is a NodeClaim",
			},
		},
		"a name that is nothing": {
			run:  func(s *scenario) { s.pvc("data", "default-b") },
			want: []string{"default/data: volume.kubernetes.io/selected-node is default-b: no Node of that name ever existed"},
		},
	})
}
