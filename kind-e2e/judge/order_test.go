// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// badRun breaks most invariants once.
func badRun(s *scenario) {
	goodRun(s)
	s.claim(claimOn("b", "")).pod(pod("lost"))
	s.pod(pod("early")).node(node("n2", notReady)).pod(pod("early", on("n2"))).node(node("n2"))
	for _, name := range []string{"x", "y", "z"} {
		s.pod(pod(name)).pod(pod(name, on("n2"))).node(node("n2"))
	}
	s.pod(pod("straw")).pod(pod("straw", on("n2"))).podGone(pod("straw", on("n2")))
	s.node(node("n3")).node(node("n3", heldNode))
	s.pod(pod("thief", byScheduler("default-scheduler"))).pod(pod("thief", byScheduler("default-scheduler"), on("n3")))
	s.node(node("n3")).pvc("data", "b").wait(time.Minute)
}

// However the watches of the kinds interleave, the verdict is the same.
func TestVerdictDoesNotDependOnTheInterleaving(t *testing.T) {
	t.Parallel()
	s := newScenario()
	badRun(s)
	want := s.Check(s.now, Rules{WantNothingLeft: true})
	if len(want) < 8 {
		t.Fatalf("only %d violations were planted: %v", len(want), names(want))
	}
	rapid.Check(t, func(t *rapid.T) {
		queues := map[int][]Observation{}
		for _, o := range s.journal {
			queues[kindRank(o)] = append(queues[kindRank(o)], o)
		}
		shuffled := NewState("jit-scheduler")
		shuffled.ObserveInstances(s.instancesByLaunch())
		for len(queues) > 0 {
			kinds := []int{}
			for kind := range queues {
				kinds = append(kinds, kind)
			}
			slices.Sort(kinds)
			kind := rapid.SampledFrom(kinds).Draw(t, "kind")
			shuffled.Observe(queues[kind][0])
			if queues[kind] = queues[kind][1:]; len(queues[kind]) == 0 {
				delete(queues, kind)
			}
		}
		if diff := cmp.Diff(want, shuffled.Check(s.now, Rules{WantNothingLeft: true})); diff != "" {
			t.Fatalf("violations (-in order +interleaved):\n%s", diff)
		}
	})
}
