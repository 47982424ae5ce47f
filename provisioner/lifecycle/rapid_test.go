// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"maps"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// TestWorld plays random lives, with failures, delays, lost answers, people and crashes, and asks after each step for
// the invariants, and at the end for what must come of it: every pod bound, one machine per claim, and when the pods
// go, nothing left. In a step, Skip is rapid's way to draw another one: the step makes no sense now, the test goes on.
func TestWorld(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		p := start(t, w)
		crashes := 0
		mayCrash := rapid.Bool().Draw(t, "may crash")
		t.Repeat(map[string]func(*rapid.T){
			"pods": func(t *rapid.T) {
				for range rapid.IntRange(1, 7).Draw(t, "pods") {
					w.pods[types.UID(w.name("p"))] = ""
				}
			},
			"cycle": func(t *rapid.T) {
				for _, uid := range slices.Sorted(maps.Keys(w.pods)) {
					p.cycle(uid, rapid.IntRange(1, 3).Draw(t, "size"))
				}
			},
			"finish": func(t *rapid.T) {
				for range rapid.IntRange(1, 5).Draw(t, "n") {
					if len(p.flying) == 0 {
						t.Skip("nothing in flight")
					}
					i := rapid.IntRange(0, len(p.flying)-1).Draw(t, "i")
					p.finish(i, outcome(rapid.IntRange(0, int(outcomes)-1).Draw(t, "how")))
				}
			},
			"works": func(t *rapid.T) {
				for len(p.flying) > 0 {
					p.finish(0, works)
				}
			},
			"deliver": func(t *rapid.T) {
				for range rapid.IntRange(1, 9).Draw(t, "n") {
					p.deliver(rapid.SampledFrom([]string{"claim", "node", "pod"}).Draw(t, "kind"))
				}
			},
			"boot": func(t *rapid.T) { w.boot() },
			"pass": func(t *rapid.T) {
				p.pass(time.Duration(rapid.IntRange(1, 120).Draw(t, "seconds")) * time.Second)
			},
			"crash": func(t *rapid.T) {
				if !mayCrash {
					t.Skip("not this time")
				}
				crashes++
				for range rapid.IntRange(0, len(p.flying)).Draw(t, "late") {
					w.do(p.flying[0].a, false, false)
					p.flying = p.flying[1:]
				}
				p = start(t, w)
			},
			"arrive": func(t *rapid.T) {
				for _, uid := range p.expected {
					pod := types.UID(w.name("p"))
					w.pods[pod] = ""
					p.apply(PodArrived{Expected: uid, Pod: testPod(string(pod))})
				}
				p.expected = nil
			},
			"offer": func(t *rapid.T) {
				if parked := p.state.Parked(); len(parked) > 0 {
					p.apply(PodsOffered{Pods: parked[:rapid.IntRange(1, len(parked)).Draw(t, "offered")]})
				}
			},
			"delete pod": func(t *rapid.T) {
				if len(w.pods) == 0 {
					t.Skip("no pod")
				}
				w.deletePod(rapid.SampledFrom(slices.Sorted(maps.Keys(w.pods))).Draw(t, "pod"))
			},
			"delete claim": func(t *rapid.T) {
				if len(w.claims) == 0 {
					t.Skip("no claim")
				}
				w.do(DeleteClaim{Name: rapid.SampledFrom(slices.Sorted(maps.Keys(w.claims))).Draw(t, "claim")}, false, false)
			},
			"people": func(t *rapid.T) {
				if len(w.nodes) == 0 {
					t.Skip("no node")
				}
				n := w.nodes[rapid.SampledFrom(slices.Sorted(maps.Keys(w.nodes))).Draw(t, "node")].DeepCopy()
				switch rapid.SampledFrom([]string{"delete", "uncordon", "keep", "evict", "end"}).Draw(t, "what") {
				case "delete":
					w.do(DeleteNode{Node: n.Name}, false, false)
				case "uncordon":
					n.Spec.Unschedulable = false
					w.putNode(n)
				case "keep":
					if holding(n) {
						n.Annotations[HoldAnnotation] = HoldKeep
						w.putNode(n)
					}
				case "evict":
					for _, uid := range w.podsOn(n.Name) {
						p.apply(PodSeen{Pod: testPod(string(uid)), Node: n.Name, Evicted: true})
					}
				case "end":
					w.machines[n.Spec.ProviderID].State = "terminated"
					p.apply(InstanceGone{ProviderID: n.Spec.ProviderID})
				}
			},
		})
		p.settle(t, crashes)
		p.wantServed(t)
		for _, uid := range slices.Sorted(maps.Keys(w.pods)) {
			w.deletePod(uid)
		}
		p.settle(t, crashes)
		p.wantNothing(t)
	})
}

// settle lets everything work until nothing changes for twenty minutes.
func (p *process) settle(t *rapid.T, crashes int) {
	for _, uid := range p.expected {
		p.apply(PodGone{UID: uid})
	}
	for quiet, round := 0, 0; quiet < 60; round++ {
		if round > 5000 {
			t.Fatalf("no rest; last actions: %v", p.log[max(0, len(p.log)-20):])
		}
		before := p.w.seq + p.done
		for len(p.flying) > 0 {
			p.finish(0, works)
		}
		for _, kind := range []string{"claim", "node", "pod"} {
			for len(p.w.told[kind]) > 0 {
				p.deliver(kind)
			}
		}
		p.w.boot()
		for _, uid := range slices.Sorted(maps.Keys(p.w.pods)) {
			p.cycle(uid, 3)
		}
		p.pass(20 * time.Second)
		if quiet++; before != p.w.seq+p.done {
			quiet = 0
		}
		if quiet == 30 && p.sweep(t, crashes) {
			quiet = 0
		}
	}
}

// sweep compares claims and machines, as the shell does now and then: a machine may end while nobody looks, and one
// may belong to no claim, but only if a request has outlived a crashed process.
func (p *process) sweep(t *rapid.T, crashes int) bool {
	swept := false
	for c := range p.state.Claims() {
		if m := p.w.machines[c.ProviderID]; m != nil && m.State == "terminated" && !c.Ending {
			p.apply(InstanceGone{ProviderID: c.ProviderID})
			swept = true
		}
	}
	for id, m := range p.w.machines {
		if m.State == "terminated" || p.state.byProvider[id] != nil {
			continue
		}
		if crashes == 0 {
			t.Fatalf("machine %s of group %s belongs to no claim", id, m.group)
		}
		m.State, swept = "terminated", true
	}
	return swept
}

// wantServed: every pod is bound, no node is held or tainted for nothing, and every machine belongs to exactly one claim.
func (p *process) wantServed(t *rapid.T) {
	for uid, node := range p.w.pods {
		if node == "" {
			t.Errorf("pod %s is not bound", uid)
		}
	}
	for name, n := range p.w.nodes {
		if holding(n) || hasTaint(n, &karpv1.DisruptedNoScheduleTaint) && n.DeletionTimestamp == nil && len(p.w.podsOn(name)) > 0 {
			t.Errorf("node %s is still kept from others", name)
		}
	}
	owners := map[string]string{}
	for name, c := range p.w.claims {
		if other := owners[c.Status.ProviderID]; other != "" {
			t.Errorf("claims %s and %s have one machine", name, other)
		}
		owners[c.Status.ProviderID] = name
		if m := p.w.machines[c.Status.ProviderID]; m == nil || m.State == "terminated" {
			t.Errorf("claim %s has no machine", name)
		}
	}
	for id, m := range p.w.machines {
		if m.State != "terminated" && owners[id] == "" {
			t.Errorf("machine %s of group %s belongs to no claim", id, m.group)
		}
	}
}

func (p *process) wantNothing(t *rapid.T) {
	for id, m := range p.w.machines {
		if m.State != "terminated" {
			t.Errorf("machine %s is left", id)
		}
	}
	if n := len(p.w.claims) + len(p.w.nodes) + len(p.cache) + len(p.parked); n != 0 {
		t.Fatalf("left: claims %v, nodes %v, planned %v, parked %v", slices.Sorted(maps.Keys(p.w.claims)),
			slices.Sorted(maps.Keys(p.w.nodes)), slices.Sorted(maps.Keys(p.cache)), slices.Sorted(maps.Keys(p.parked)))
	}
	s := p.state
	if n := len(s.claims) + len(s.groups) + len(s.pods) + len(s.nodes) + len(s.surplus) + len(s.flights) + len(s.planned) + len(s.gates); n != 0 {
		t.Fatalf("the state remembers: claims %v groups %v pods %v nodes %v flights %v closed %v", slices.Sorted(maps.Keys(s.claims)),
			slices.Sorted(maps.Keys(s.groups)), slices.Sorted(maps.Keys(s.pods)), slices.Sorted(maps.Keys(s.nodes)),
			slices.Sorted(maps.Keys(s.flights)), s.gates)
	}
}
