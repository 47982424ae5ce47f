// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"strings"
	"time"
)

// links tells which node, claim and instance belong together, over all time.
type links struct {
	claimOfNode     map[string]string // node name → claim name
	claimOfInstance map[string]string // instance id → claim name
	claims          map[string]claimLife
	nodes           map[string]bool // every node name ever seen
}

// claimLife is when the judge saw a claim come and go.
type claimLife struct {
	first   *Claim
	last    *Claim
	seen    time.Time
	deleted time.Time // zero while it exists
}

func newLinks(s *State) *links {
	l := &links{
		claimOfNode:     map[string]string{},
		claimOfInstance: map[string]string{},
		claims:          map[string]claimLife{},
		nodes:           map[string]bool{},
	}
	nodeOfProviderID := map[string]string{}
	claimOfProviderID := map[string]string{}
	for i := range s.journal {
		switch o := &s.journal[i]; {
		case o.Claim != nil:
			l.addClaim(o)
			if id := o.Claim.Status.ProviderID; id != "" {
				claimOfProviderID[id] = o.Claim.Name
				l.claimOfInstance[instanceID(id)] = o.Claim.Name
			}
		case o.Node != nil:
			l.nodes[o.Node.Name] = true
			nodeOfProviderID[o.Node.Spec.ProviderID] = o.Node.Name
		}
	}
	for id, claim := range claimOfProviderID {
		if node, ok := nodeOfProviderID[id]; ok {
			l.claimOfNode[node] = claim
		}
	}
	for id, instance := range s.instances {
		if claim := instance.Tags[tagNodeClaim]; claim != "" {
			l.claimOfInstance[id] = claim
		}
	}
	return l
}

func (l *links) addClaim(o *Observation) {
	life, known := l.claims[o.Claim.Name]
	if !known {
		life.first, life.seen = o.Claim, o.Time
	}
	life.last = o.Claim
	life.deleted = time.Time{}
	if o.Op == Deleted {
		life.deleted = o.Time
	}
	l.claims[o.Claim.Name] = life
	if node := o.Claim.Status.NodeName; node != "" {
		l.claimOfNode[node] = o.Claim.Name
	}
}

// instanceID is the last part of an AWS provider id (aws:///zone/id).
func instanceID(providerID string) string {
	return providerID[strings.LastIndexByte(providerID, '/')+1:]
}
