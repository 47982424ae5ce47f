// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// PodTimes is the life of one pod as the judge saw it. A zero time: not seen.
// All but CreateFleet (the fake's time of arrival) are when a watch of the judge
// showed it.
type PodTimes struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	FirstSeen time.Time `json:"firstSeen"`
	// Nominated is the first time that status.nominatedNodeName was set, to NominatedNode.
	Nominated     time.Time `json:"nominated,omitzero"`
	NominatedNode string    `json:"nominatedNode,omitempty"`
	// NodeClaim is the claim of the pod's node, else the one that it is nominated to.
	NodeClaim   string    `json:"nodeClaim,omitempty"`
	ClaimSeen   time.Time `json:"claimSeen,omitzero"`
	CreateFleet time.Time `json:"createFleet,omitzero"` // first call for the claim's instance
	Node        string    `json:"node,omitempty"`
	NodeSeen    time.Time `json:"nodeSeen,omitzero"` // the Node object appeared
	NodeReady   time.Time `json:"nodeReady,omitzero"`
	Bound       time.Time `json:"bound,omitzero"`
	Deleted     time.Time `json:"deleted,omitzero"`

	// BeforeNode means that the pod was nominated before the Node object that it
	// was bound to existed, or that it is nominated and not bound yet.
	BeforeNode bool `json:"nominatedBeforeNode,omitempty"`

	listed            bool // was there before the judge
	daemonSet         bool
	nominatedRevision uint64
	boundRevision     uint64
}

// podTimes are the lives of the selected pods in order of appearance.
func (s *State) podTimes(l *links, sel PodSelector) []*PodTimes {
	lives := map[types.UID]*PodTimes{}
	var order []*PodTimes
	for i := range s.journal {
		o := &s.journal[i]
		if o.Pod == nil || !sel.Matches(o.Pod) {
			continue
		}
		life := lives[o.Pod.UID]
		if life == nil {
			life = &PodTimes{
				Namespace: o.Pod.Namespace, Name: o.Pod.Name, FirstSeen: o.Time,
				listed: o.Listed, daemonSet: ofDaemonSet(o.Pod),
			}
			lives[o.Pod.UID] = life
			order = append(order, life)
		}
		life.see(o)
	}
	fleets := s.fleetTimes(l)
	for _, life := range order {
		if node := l.nodeAt(life.Node, life.boundRevision); node != nil {
			life.NodeSeen, life.NodeReady, life.NodeClaim = node.seen, node.ready, node.claim
			life.BeforeNode = !life.Nominated.IsZero() && life.nominatedRevision < node.revision
		} else {
			life.BeforeNode = !life.Nominated.IsZero() && life.Node == ""
		}
		if claim, ok := l.claims[life.NominatedNode]; ok && life.Node == "" {
			life.NodeClaim = claim.first.Name
		}
		life.ClaimSeen = l.claims[life.NodeClaim].seen
		life.CreateFleet = fleets[life.NodeClaim]
	}
	slices.SortStableFunc(order, func(a, b *PodTimes) int { return cmp.Compare(a.FirstSeen.UnixNano(), b.FirstSeen.UnixNano()) })
	return order
}

func (p *PodTimes) see(o *Observation) {
	if name := o.Pod.Status.NominatedNodeName; name != "" && p.Nominated.IsZero() {
		p.Nominated, p.NominatedNode, p.nominatedRevision = o.Time, name, o.revision
	}
	if name := o.Pod.Spec.NodeName; name != "" && p.Bound.IsZero() {
		p.Bound, p.Node, p.boundRevision = o.Time, name, o.revision
	}
	if o.Op == Deleted {
		p.Deleted = o.Time
	}
}

// fleetTimes is when the first CreateFleet for each claim's instance arrived.
func (s *State) fleetTimes(l *links) map[string]time.Time {
	byToken := map[string]time.Time{}
	var launches []time.Time
	for i := range s.calls {
		call := &s.calls[i]
		if !call.launches() {
			continue
		}
		launches = append(launches, call.Time.Time)
		if token := call.clientToken(); token != "" && byToken[token].IsZero() {
			byToken[token] = call.Time.Time
		}
	}
	times := map[string]time.Time{}
	for _, instance := range s.instancesByLaunch() {
		claim := l.claimOfInstance[instance.ID]
		if claim == "" || !times[claim].IsZero() {
			continue
		}
		if at, ok := byToken[instance.ClientToken]; ok {
			times[claim] = at
			continue
		}
		// A caller that sends no token: the last call before the launch.
		for _, at := range launches {
			if !at.After(instance.LaunchedAt.Time) {
				times[claim] = at
			}
		}
	}
	return times
}

// waited reports whether the pod was there, seen from its beginning, before its
// node was ready: only then do its latencies say something of provisioning.
func (p *PodTimes) waited() bool {
	return !p.listed && !p.daemonSet && !p.NodeReady.IsZero() && p.FirstSeen.Before(p.NodeReady)
}

// bindingOf is how fast pods were bound.
func bindingOf(pods []*PodTimes) Binding {
	var b Binding
	var latencies []time.Duration
	for _, pod := range pods {
		b.Pods++
		if b.FirstSeen.IsZero() {
			b.FirstSeen = pod.FirstSeen
		}
		if pod.Bound.IsZero() || pod.listed {
			continue
		}
		latencies = append(latencies, pod.Bound.Sub(pod.FirstSeen))
		if pod.Bound.After(b.LastBound) {
			b.LastBound = pod.Bound
		}
	}
	b.Bound, b.Latency = len(latencies), newDist(latencies)
	b.PodsPerSecond = rate(b.Bound, b.LastBound.Sub(b.FirstSeen))
	return b
}

// Binding is how fast some pods were bound: of plain pods for the default
// scheduler on ready nodes it is the floor that other figures stand next to.
type Binding struct {
	Pods          int       `json:"pods"`
	Bound         int       `json:"bound"`
	FirstSeen     time.Time `json:"firstSeen,omitzero"`
	LastBound     time.Time `json:"lastBound,omitzero"`
	PodsPerSecond float64   `json:"podsPerSecond"` // from the first pod seen to the last bound
	Latency       Dist      `json:"latency"`       // from seen to bound
}

func rate(n int, over time.Duration) float64 {
	if n == 0 || over <= 0 {
		return 0
	}
	return float64(n) / over.Seconds()
}

// Binding measures the selected pods.
func (s *State) Binding(sel PodSelector) Binding {
	return bindingOf(s.podTimes(newLinks(s), sel))
}

// Binding measures the selected pods: the floor, if they are plain pods for the
// default scheduler which ready nodes can take.
func (j *Judge) Binding(sel PodSelector) Binding {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.state.Binding(sel)
}
