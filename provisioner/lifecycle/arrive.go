// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// PodArrived gives the place kept for an expected pod (one whose owner has yet to create it; planned under a made-up
// UID) to the pod that came.
type PodArrived struct {
	Expected types.UID
	Pod      Pod
}

// PodsOffered says that ready nodes have room for these parked pods: they give their places up and go back into the
// queue.
type PodsOffered struct{ Pods []types.UID }

func (PodArrived) event()  {}
func (PodsOffered) event() {}

func (s *State) onPodArrived(ev PodArrived) {
	old := s.pods[ev.Expected]
	if old == nil || old.claim == nil || s.pods[ev.Pod.UID] != nil {
		return
	}
	c := old.claim
	delete(s.pods, ev.Expected)
	delete(c.reserved, ev.Expected)
	wanted := old.Requests
	old.Pod = ev.Pod
	s.pods[old.UID], c.reserved[old.UID] = old, old
	// A pod is not always what its template says (defaults, admission): its own size counts.
	p := old.Pod
	old.Requests = wanted
	s.pendingSeen(old, PodSeen{Pod: p})
}

func (s *State) onPodsOffered(ev PodsOffered) {
	byClaim := map[*claim][]*pod{}
	var order []*claim
	for _, uid := range ev.Pods {
		p := s.pods[uid]
		if p == nil || p.claim == nil || p.paired {
			continue
		}
		if !slices.Contains(order, p.claim) {
			order = append(order, p.claim)
		}
		byClaim[p.claim] = append(byClaim[p.claim], p)
	}
	for _, c := range order {
		s.requeue(c, byClaim[c], "", "a ready node has room")
	}
}

// Reserved lists the pods that wait on a claim for its machine, longest first.
func (s *State) Reserved(claim string) []Pod {
	c := s.claims[claim]
	if c == nil {
		return nil
	}
	var out []Pod
	for _, p := range s.waiting(c) {
		if !p.paired {
			out = append(out, p.Pod)
		}
	}
	return out
}

// Parked lists the pods that wait for a machine, longest first.
func (s *State) Parked() []types.UID {
	var waiting []*pod
	for _, p := range s.pods {
		if p.claim != nil && !p.paired {
			waiting = append(waiting, p)
		}
	}
	slices.SortFunc(waiting, func(a, b *pod) int { return int(a.seq - b.seq) })
	uids := make([]types.UID, 0, len(waiting))
	for _, p := range waiting {
		uids = append(uids, p.UID)
	}
	return uids
}
