// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// State is all that is known of claims, their nodes and the pods that wait for them. Not safe for concurrent use.
type State struct {
	cfg    Config
	now    time.Time
	synced bool
	seq    int64

	claims  map[string]*claim
	groups  map[string]*group
	pods    map[types.UID]*pod
	nodes   map[string]*node
	pools   map[string]*pool
	surplus map[string]*surplus

	byProvider     map[string]*claim
	nodeByProvider map[string]*node
	// planned are the claims whose planned node is in the scheduler's cache.
	planned map[string]*claim
	// ended are the instances that are gone, for nodes that turn up late; buried are claims, by UID, that an
	// informer may still tell of.
	ended  map[string]time.Time
	buried map[types.UID]time.Time
	// gates is never written again once it was handed out.
	gates map[string]Gate

	flights  map[string]*flight
	dirty    []entity
	timers   timers
	out      []Action
	counters Counters
}

// New makes an empty state; nothing is done before Synced.
func New(cfg Config) *State {
	return &State{
		cfg:            cfg.withDefaults(),
		claims:         map[string]*claim{},
		groups:         map[string]*group{},
		pods:           map[types.UID]*pod{},
		nodes:          map[string]*node{},
		pools:          map[string]*pool{},
		surplus:        map[string]*surplus{},
		byProvider:     map[string]*claim{},
		nodeByProvider: map[string]*node{},
		planned:        map[string]*claim{},
		ended:          map[string]time.Time{},
		buried:         map[types.UID]time.Time{},
		gates:          map[string]Gate{},
		flights:        map[string]*flight{},
	}
}

// Apply records one fact and returns the actions that are due because of it, in the order in which they are to be
// started. now never goes backwards.
func (s *State) Apply(now time.Time, ev Event) []Action {
	if now.After(s.now) {
		s.now = now
	}
	s.record(ev)
	s.settle()
	out := s.out
	s.out = nil
	return out
}

func (s *State) record(ev Event) {
	switch ev := ev.(type) {
	case Planned:
		s.onPlanned(ev)
	case Synced:
		s.onSynced()
	case Restore:
		s.onRestore(ev)
	case ClaimSeen:
		s.onClaimSeen(ev.Claim)
	case ClaimGone:
		s.onClaimGone(ev.Name)
	case ClaimRefused:
		s.onClaimRefused(ev)
	case Launched:
		s.onLaunched(ev)
	case LaunchFailed:
		s.onLaunchFailed(ev)
	case Found:
		s.onFound(ev)
	case NodeSeen:
		s.onNodeSeen(ev.Node)
	case NodeGone:
		s.onNodeGone(ev.Name)
	case InstanceGone:
		s.onInstanceGone(ev.ProviderID)
	case PodSeen:
		s.onPodSeen(ev)
	case PodGone:
		s.onPodGone(ev.UID)
	case PodArrived:
		s.onPodArrived(ev)
	case PodsOffered:
		s.onPodsOffered(ev)
	case PodReserved:
		s.onPodReserved(ev)
	case PodUnreserved:
		s.onPodUnreserved(ev.UID)
	case PodMisfit:
		s.onPodMisfit(ev.UID)
	case Drained:
		s.onDrained(ev)
	case Done:
		s.onDone(ev.Key)
	case Failed:
		s.onFailed(ev)
	case PoolSeen:
		s.onPoolSeen(ev.Pool)
	case PoolGone:
		s.onPoolGone(ev.Name)
	case Tick:
		s.tick()
	}
}

// NextDeadline is when a Tick is due; false: never.
func (s *State) NextDeadline() (time.Time, bool) {
	if len(s.timers) == 0 {
		return time.Time{}, false
	}
	return s.timers[0].wake, true
}

func (s *State) onSynced() {
	s.synced = true
	for _, name := range slices.Sorted(maps.Keys(s.pools)) {
		s.mark(s.pools[name])
	}
	for _, name := range slices.Sorted(maps.Keys(s.nodes)) {
		s.adoptOrphan(s.nodes[name])
		s.mark(s.nodes[name])
	}
	for _, c := range s.ordered(s.claims) {
		c.settleUntil = s.now.Add(s.cfg.RestoreTime)
		if n := s.nodeOf(c); n != nil && holding(n.object) && !c.ending() {
			c.handed = false // the former process died with pods paired: they come back here
		}
		s.mark(c)
	}
}

// onDone is the success of an action without an event of its own.
func (s *State) onDone(key string) {
	f := s.answer(key, 0)
	if f == nil {
		return
	}
	switch a := f.action.(type) {
	case PatchClaim:
		if c := s.claims[a.Claim.Name]; c != nil && c.exists && !c.objectGone {
			c.object = a.Claim
		}
	case TagInstance:
		if c := s.claims[a.Claim]; c != nil {
			c.tagged = true
			c.own.annotate(taggedAnnotation, "true")
			c.own.annotate(clusterTaggedAnnotation, "true")
			s.mark(c)
		}
	case Terminate:
		s.onTerminating(a)
	}
}

// onFailed is the failure of an action.
func (s *State) onFailed(ev Failed) {
	f := s.fail(ev.Key)
	if f == nil {
		return
	}
	if _, ok := f.action.(AwaitTermination); ok && !ev.Gone {
		f.until = s.now.Add(s.cfg.PollEvery)
		if _, orphan := f.owner.(*node); orphan {
			f.until = s.now.Add(orphanPatience)
		}
	}
	if !ev.Gone {
		return
	}
	switch a := f.action.(type) {
	case PatchClaim:
		s.onClaimGone(a.Claim.Name)
	case DeleteClaim:
		s.onClaimGone(a.Name)
	case RemoveClaimFinalizer:
		s.onClaimGone(a.Name)
	case RegisterNode:
		s.onNodeGone(a.Node)
	case InitializeNode:
		s.onNodeGone(a.Node)
	case ReleaseHold:
		s.onNodeGone(a.Node)
	case TaintNode:
		s.onNodeGone(a.Node)
	case DeleteNode:
		s.onNodeGone(a.Node)
	case Drain:
		s.onNodeGone(a.Node)
	case RemoveNodeFinalizer:
		s.onNodeGone(a.Node)
	case TagInstance:
		s.onInstanceGone(a.ProviderID)
	case Terminate:
		s.onInstanceGone(a.ProviderID)
	case AwaitTermination:
		s.onInstanceGone(a.ProviderID)
	}
}

// ordered lists claims by when they were first known.
func (s *State) ordered(set map[string]*claim) []*claim {
	return slices.SortedFunc(maps.Values(set), func(a, b *claim) int { return int(a.seq - b.seq) })
}

// memory is how long what is gone is remembered.
const memory = time.Hour

// prune forgets what was remembered long enough.
func prune[K comparable](m map[K]time.Time, now time.Time) {
	maps.DeleteFunc(m, func(_ K, at time.Time) bool { return now.Sub(at) > memory })
}

func (s *State) next() int64 {
	s.seq++
	return s.seq
}

// gate sets what overrides the Node object, ungate takes it back if it is what.
func (s *State) gate(node string, what Gate) {
	if s.gates[node] != what {
		s.gates = maps.Clone(s.gates)
		s.gates[node] = what
	}
}

func (s *State) ungate(node string, what Gate) {
	if s.gates[node] == what {
		s.gates = maps.Clone(s.gates)
		delete(s.gates, node)
	}
}

func nodeReady(n *v1.Node) bool {
	for i := range n.Status.Conditions {
		if c := &n.Status.Conditions[i]; c.Type == v1.NodeReady {
			return c.Status == v1.ConditionTrue
		}
	}
	return false
}
