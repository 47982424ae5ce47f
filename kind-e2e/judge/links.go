// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// links tells which node, claim and instance belong together, over all time.
type links struct {
	claimOfInstance map[string]string // instance id → claim name
	claims          map[string]claimLife
	nodes           map[string][]*nodeLife // by name, oldest first: addresses, and so names, come back
}

// claimLife is when the judge saw a claim come and go.
type claimLife struct {
	first   *Claim
	seen    time.Time
	deleted time.Time // zero while it exists
}

// nodeLife is when one Node object first appeared and first was Ready, and the
// claim that it belongs to, if any.
type nodeLife struct {
	uid         types.UID
	revision    uint64
	seen, ready time.Time
	providerID  string
	claim       string
}

func newLinks(s *State) *links {
	l := &links{
		claimOfInstance: map[string]string{},
		claims:          map[string]claimLife{},
		nodes:           map[string][]*nodeLife{},
	}
	claimOfProviderID, claimOfNodeName := map[string]string{}, map[string]string{}
	for i := range s.journal {
		switch o := &s.journal[i]; {
		case o.Claim != nil:
			l.addClaim(o)
			if name := o.Claim.Status.NodeName; name != "" {
				claimOfNodeName[name] = o.Claim.Name
			}
			if id := o.Claim.Status.ProviderID; id != "" {
				claimOfProviderID[id] = o.Claim.Name
				l.claimOfInstance[instanceID(id)] = o.Claim.Name
			}
		case o.Node != nil:
			l.addNode(o)
		}
	}
	for id, instance := range s.instances {
		if claim := instance.Tags[tagNodeClaim]; claim != "" {
			l.claimOfInstance[id] = claim
		}
	}
	for name, lives := range l.nodes {
		for _, life := range lives {
			life.claim = claimOfProviderID[life.providerID]
			if life.claim == "" {
				life.claim = l.claimOfInstance[instanceID(life.providerID)]
			}
			if life.claim == "" {
				life.claim = claimOfNodeName[name]
			}
		}
	}
	return l
}

func (l *links) addClaim(o *Observation) {
	life, known := l.claims[o.Claim.Name]
	if !known {
		life.first, life.seen = o.Claim, o.Time
	}
	life.deleted = time.Time{}
	if o.Op == Deleted {
		life.deleted = o.Time
	}
	l.claims[o.Claim.Name] = life
}

func (l *links) addNode(o *Observation) {
	lives := l.nodes[o.Node.Name]
	if len(lives) == 0 || lives[len(lives)-1].uid != o.Node.UID {
		lives = append(lives, &nodeLife{uid: o.Node.UID, revision: o.revision, seen: o.Time})
		l.nodes[o.Node.Name] = lives
	}
	life := lives[len(lives)-1]
	if o.Node.Spec.ProviderID != "" {
		life.providerID = o.Node.Spec.ProviderID
	}
	if life.ready.IsZero() && o.Op != Deleted && ready(o.Node) {
		life.ready = o.Time
	}
}

// nodeAt is the node of that name at a revision: the last that appeared before
// it, else the first that did after it; nil if there never was one.
func (l *links) nodeAt(name string, revision uint64) *nodeLife {
	var found *nodeLife
	for _, life := range l.nodes[name] {
		if found == nil || life.revision <= revision {
			found = life
		}
	}
	return found
}

// instanceID is the last part of an AWS provider id (aws:///zone/id).
func instanceID(providerID string) string {
	return providerID[strings.LastIndexByte(providerID, '/')+1:]
}
