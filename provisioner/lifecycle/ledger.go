// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jit-scheduler/jit-scheduler/provisioner/scheduling"
)

// pod is the ledger's entry: a pod that waits for a machine, is being bound, or runs on a node.
type pod struct {
	Pod
	seq int64
	// claim it is reserved on, from the plan until it is bound; paired: the machine is ready.
	claim  *claim
	paired bool
	// chosen is the node a cycle has reserved for it; bound the node it is bound to.
	chosen, bound                             string
	daemonSet, statefulSet, terminal, leaving bool
}

// keeps says whether the bound pod keeps its machine.
func (p *pod) keeps() bool {
	return p.bound != "" && !p.daemonSet && !p.terminal && (!p.leaving || p.statefulSet)
}

// reserve puts pods on a claim as far as they fit, and returns them all: who is left out must cycle again. A pod that
// is reserved already stays where it is.
func (s *State) reserve(c *claim, pods []Pod) []types.UID {
	var all []types.UID
	for i := range pods {
		p := s.pods[pods[i].UID]
		if p == nil {
			p = &pod{Pod: pods[i], seq: s.next()}
			s.pods[p.UID] = p
		}
		all = append(all, p.UID)
		if p.claim != nil || p.bound != "" {
			continue
		}
		if !c.hasRoomFor(pods[i].Requests) {
			s.forgetPod(p)
			continue
		}
		p.Pod = pods[i]
		p.claim, p.paired = c, false
		c.reserved[p.UID] = p
		add(c.sum, p.Requests)
	}
	return all
}

// release takes a pod off its claim.
func (s *State) release(p *pod) {
	c := p.claim
	if c == nil {
		return
	}
	p.claim, p.paired = nil, false
	delete(c.reserved, p.UID)
	sub(c.sum, p.Requests)
	if len(c.reserved) == 0 {
		c.sum = v1.ResourceList{}
	}
	s.mark(c)
	s.forgetPod(p)
}

// forgetPod drops an entry that says nothing any more.
func (s *State) forgetPod(p *pod) {
	if p.claim == nil && p.chosen == "" && p.bound == "" {
		delete(s.pods, p.UID)
	}
}

// waiting lists a claim's pods, longest first.
func (s *State) waiting(c *claim) []*pod {
	return slices.SortedFunc(maps.Values(c.reserved), func(a, b *pod) int { return int(a.seq - b.seq) })
}

// requeue puts pods of a claim back into the queue: paired with a node, or to be planned again.
func (s *State) requeue(c *claim, pods []*pod, node, why string) {
	if len(pods) == 0 {
		return
	}
	a := Requeue{Claim: c.name, Node: node, Reason: why}
	for _, p := range pods {
		a.Pods = append(a.Pods, p.UID)
		if node != "" {
			p.paired = true
		} else {
			s.release(p)
			s.wait(c.pool, p.UID)
		}
	}
	s.emit(a)
}

// refit takes off what the claim cannot hold any more, last come first.
func (s *State) refit(c *claim, why string) {
	var out []*pod
	pods := s.waiting(c)
	sum := scheduling.Add(c.sum, c.daemons)
	for i := len(pods) - 1; i >= 0 && !scheduling.Fits(sum, c.room); i-- {
		sum = scheduling.Sub(sum, pods[i].Requests)
		out = append(out, pods[i])
	}
	slices.Reverse(out)
	s.requeue(c, out, "", why)
}

func (s *State) onPodSeen(ev PodSeen) {
	p := s.pods[ev.UID]
	if ev.Node == "" {
		s.pendingSeen(p, ev)
		return
	}
	if p == nil {
		p = &pod{seq: s.next()}
		s.pods[ev.UID] = p
	}
	kept, was := p.keeps(), p.bound
	p.bound = ev.Node
	if c := p.claim; c != nil {
		s.release(p)
		s.counters.Bound++
	}
	s.choose(p, "")
	p.Pod = ev.Pod
	p.daemonSet, p.statefulSet, p.terminal, p.leaving = ev.DaemonSet, ev.StatefulSet, ev.Terminal, ev.Terminating
	if was != p.bound {
		s.leave(p, was)
	}
	n := s.nodeAt(p.bound)
	n.pods[p.UID] = p
	if now := p.keeps(); was != p.bound || kept != now {
		n.keepers += count(now) - count(kept && was == p.bound)
		if !p.daemonSet {
			s.podEvent(n)
		}
	}
	if ev.Evicted && !ev.DaemonSet {
		s.onEvicted(n)
	}
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// pendingSeen: a pod that waits was changed.
func (s *State) pendingSeen(p *pod, ev PodSeen) {
	if p == nil || p.claim == nil {
		return
	}
	if ev.Terminal || ev.Terminating {
		s.release(p)
		return
	}
	if equality.Semantic.DeepEqual(p.Requests, ev.Requests) {
		return
	}
	c := p.claim
	sub(c.sum, p.Requests)
	p.Pod = ev.Pod
	add(c.sum, p.Requests)
	if !p.paired {
		if !scheduling.Fits(scheduling.Add(c.sum, c.daemons), c.room) {
			s.requeue(c, []*pod{p}, "", "the pod was resized and no longer fits "+c.name)
		}
		s.mark(c)
	}
}

// leave takes a pod off the node it was bound to.
func (s *State) leave(p *pod, node string) {
	n := s.nodes[node]
	if n == nil || n.pods[p.UID] == nil {
		return
	}
	delete(n.pods, p.UID)
	n.keepers = 0
	for _, other := range n.pods {
		n.keepers += count(other.keeps())
	}
	s.forgetNode(n)
}

func (s *State) onPodGone(uid types.UID) {
	p := s.pods[uid]
	if p == nil {
		return
	}
	s.release(p)
	s.choose(p, "")
	if n := s.nodes[p.bound]; n != nil && n.pods[uid] != nil {
		delete(n.pods, uid)
		n.keepers -= count(p.keeps())
		if !p.daemonSet {
			s.podEvent(n)
		}
		s.forgetNode(n)
	}
	delete(s.pods, uid)
}

// choose notes the node that a cycle has reserved for the pod: it is not empty then.
func (s *State) choose(p *pod, node string) {
	if p.chosen == node {
		return
	}
	if n := s.nodes[p.chosen]; n != nil {
		n.chosen--
		s.markNode(n)
		s.forgetNode(n)
	}
	if p.chosen = node; node != "" {
		n := s.nodeAt(node)
		n.chosen++
		s.markNode(n)
	}
}

func (s *State) onPodReserved(ev PodReserved) {
	p := s.pods[ev.UID]
	if p == nil {
		p = &pod{Pod: Pod{UID: ev.UID}, seq: s.next()}
		s.pods[ev.UID] = p
	}
	if p.bound == "" {
		s.choose(p, ev.Node)
	}
}

func (s *State) onPodUnreserved(uid types.UID) {
	if p := s.pods[uid]; p != nil {
		s.choose(p, "")
		s.forgetPod(p)
	}
}

func (s *State) onPodMisfit(uid types.UID) {
	if p := s.pods[uid]; p != nil && p.claim != nil {
		s.release(p)
		s.emit(Activate{Pods: []types.UID{uid}})
		s.counters.Misfits++
	}
}
