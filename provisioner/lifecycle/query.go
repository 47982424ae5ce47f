// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"cmp"
	"iter"
	"maps"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
	"github.com/jit-scheduler/jit-scheduler/provisioner/scheduling"
)

// Claim is a view of a claim.
type Claim struct {
	Name, Pool string
	// Group is its launch group, Options what its launch may choose from, cheapest first.
	Group   string
	Options []cloudprovider.LaunchOption
	// Object as last seen, or as it is to be created.
	Object     *karpv1.NodeClaim
	ProviderID string
	// ImageID is what its machine booted, "" if the cloud has not said.
	ImageID string
	// LaunchedAt is when its machine became known: the cloud's lists may lack younger ones.
	LaunchedAt time.Time
	// Node is the name of the real node, "" while there is none.
	Node string
	// Launched, Registered, Initialized and HandedOver are the stages of its life, Ending its end, for Reason.
	Launched, Registered, Initialized, HandedOver, Ending bool
	Reason                                                string
	// Waiting is how many pods are reserved on it and not bound yet.
	Waiting int
	// NeedsRestore asks for a Restore event: found at start, or made by hand, and not ready yet.
	NeedsRestore bool
}

// OpenClaim is a claim that may take more pods.
type OpenClaim struct {
	Name, Pool string
	// Free is what may still be promised.
	Free v1.ResourceList
}

// Counters count since the start.
type Counters struct {
	Created, Launched, Registered, Initialized int
	// HandedOver pods were paired with their node; Bound pods left the ledger that way; Misfits did not.
	HandedOver, Bound, Misfits int
	// Deleted claims, by reason.
	Deleted map[string]int
}

func (c *Counters) deleted(reason string) {
	if c.Deleted == nil {
		c.Deleted = map[string]int{}
	}
	c.Deleted[reason]++
}

// Reservation is where a pod has its place: the claim while it waits for the machine, the node from the handover.
func (s *State) Reservation(uid types.UID) (claim, node string) {
	p := s.pods[uid]
	switch {
	case p == nil || p.claim == nil:
		return "", ""
	case p.paired:
		return "", s.nodeName(p.claim)
	default:
		return p.claim.name, ""
	}
}

// Claims lists all claims, those first that were known first.
func (s *State) Claims() iter.Seq[Claim] {
	return func(yield func(Claim) bool) {
		for _, c := range s.ordered(s.claims) {
			if !yield(s.view(c)) {
				return
			}
		}
	}
}

// Claim looks one claim up.
func (s *State) Claim(name string) (Claim, bool) {
	c := s.claims[name]
	if c == nil {
		return Claim{}, false
	}
	return s.view(c), true
}

// ClaimAt looks up the claim whose machine has the provider id.
func (s *State) ClaimAt(providerID string) (Claim, bool) {
	c := s.byProvider[providerID]
	if c == nil {
		return Claim{}, false
	}
	return s.view(c), true
}

func (s *State) view(c *claim) Claim {
	return Claim{
		Name: c.name, Pool: c.pool, Group: c.group.name, Options: c.options, Object: c.object, ProviderID: c.providerID,
		ImageID: cmp.Or(c.own.imageID, c.object.Status.ImageID), LaunchedAt: c.launchedAt, Node: s.nodeName(c),
		Launched: c.launched(), Registered: c.registered, Initialized: c.initialized, HandedOver: c.handed,
		Ending: c.ending(), Reason: c.reason, Waiting: len(c.reserved),
		NeedsRestore: c.restored && !c.ending() && !c.handed && c.planned == nil && !s.openToAll(c),
	}
}

func (s *State) isOpen(c *claim) bool {
	return c.planned != nil && !c.handed && !c.ending() && !s.openToAll(c)
}

// Open lists the claims on their way that may take more pods, oldest first.
func (s *State) Open() []OpenClaim {
	var out []OpenClaim
	for _, c := range s.ordered(s.planned) {
		if s.isOpen(c) {
			out = append(out, OpenClaim{Name: c.name, Pool: c.pool, Free: scheduling.Sub(scheduling.Sub(c.room, c.daemons), c.sum)})
		}
	}
	return out
}

// Usage is what a pool's claims take of its limits, those on their way and those being deleted included, and "nodes".
// The caller must not write to it.
func (s *State) Usage(pool string) v1.ResourceList {
	if p := s.pools[pool]; p != nil {
		return p.usage
	}
	return nil
}

// Gate overrides what a Node object says about who may use the node.
type Gate uint8

const (
	// Closed: the node is about to go, nobody may use it.
	Closed Gate = iota + 1
	// Released: nobody is left to hold the node for; the object says so as soon as the patch has come back.
	Released
)

// Gates are the nodes with a gate. The map is never written again.
func (s *State) Gates() map[string]Gate { return s.gates }

// Planned says whether the name is that of a planned node.
func (s *State) Planned(node string) bool { return s.planned[node] != nil }

// Waiting is how many pods wait for a machine.
func (s *State) Waiting() int {
	n := 0
	for _, c := range s.planned {
		n += len(c.reserved)
	}
	return n
}

// Counters returns a copy.
func (s *State) Counters() Counters {
	c := s.counters
	c.Deleted = maps.Clone(c.Deleted)
	return c
}
