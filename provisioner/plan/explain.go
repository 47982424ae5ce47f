// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
	"github.com/jit-scheduler/jit-scheduler/provisioner/scheduling"
)

// Reasons of Unplaced.
const (
	ReasonNoPool       = "NoNodePool"
	ReasonIncompatible = "NodePoolIncompatible"
	ReasonTooBig       = "NoInstanceTypeFits"
	ReasonLimit        = "NodePoolLimitReached"
	ReasonNoPrice      = "NoPrice"
	ReasonNoCapacity   = "InsufficientCapacity"
	ReasonNotNode      = "NotNodeRelated"
)

// maxMessage is the length of a message in bytes.
const maxMessage = 250

func sentence(format string, args ...any) string {
	s := fmt.Sprintf(format, args...)
	if len(s) <= maxMessage {
		return s
	}
	s = s[:maxMessage-3]
	for !utf8.ValidString(s) {
		s = s[:len(s)-1]
	}
	return s + "..."
}

// cause is why one pool does not help. The further a pool comes, the more its cause says.
type cause struct {
	stage  int
	reason string
	text   string
}

// explain says why the class's remaining pods have no place, by the pool that came closest to giving one.
func (p *planner) explain(c *class) Unplaced {
	u := Unplaced{Pods: c.rest}
	switch {
	case c.terminal != "":
		u.Reason, u.Message = ReasonNotNode, sentence("no new node can help: %s", c.terminal)
	case len(p.pools) == 0:
		u.Reason = ReasonNoPool
		u.Message = "no NodePool can open NodeClaims now; create one, or see the Ready condition of those that exist"
	default:
		var best cause
		for i, pl := range p.pools {
			if why := p.causeOf(pl, c); i == 0 || why.stage > best.stage {
				best = why
			}
		}
		u.Reason, u.Message = best.reason, sentence("%s", best.text)
		if n := len(p.pools) - 1; n > 0 {
			if long := fmt.Sprintf("%s (nor does any other NodePool: %d)", best.text, n); len(long) <= maxMessage {
				u.Message = long
			}
		}
	}
	return u
}

// causeOf goes through what a pool's machines must satisfy, in order, until nothing is left.
func (p *planner) causeOf(pl *pool, c *class) cause {
	pod := c.Pods[0]
	if taint, _ := pl.tolerated(pod); taint != nil {
		return cause{1, ReasonIncompatible, fmt.Sprintf("NodePool %q has taint %s that the pod does not tolerate; add the toleration, or a NodePool without the taint",
			pl.name, taint.ToString())}
	}
	terms := scheduling.FromPod(pod)
	if why := pl.conflict(terms); why != "" {
		return cause{2, ReasonIncompatible, why}
	}
	types, why := pl.matchingTypes(terms)
	if why != "" {
		return cause{3, ReasonIncompatible, why}
	}
	tooSmall := func(o place) bool { return times(c.request, p.dims.vector(o.typ.Allocatable)) == 0 }
	places := pl.matchingOfferings(types, terms)
	big := slices.DeleteFunc(slices.Clone(places), tooSmall)
	if len(big) == 0 {
		if unpriced := slices.DeleteFunc(pl.unpriced(types, terms), tooSmall); len(unpriced) > 0 {
			return cause{5, ReasonNoPrice, fmt.Sprintf("no price is known of the %d offerings of NodePool %q that fit the pod, such as %s %s; wait until AWS tells, allow others, or name it in the price file",
				len(unpriced), pl.name, unpriced[0].typ.Name, placeNames(unpriced[:1]))}
		}
	}
	if len(places) == 0 {
		return cause{4, ReasonIncompatible, pl.noOffering(terms)}
	}
	for _, name := range sortedKeys(c.Requests) {
		if node := pl.Absent[name]; node != "" {
			return cause{5, ReasonTooBig, fmt.Sprintf("resource %s never registered on node %s of NodePool %q; see to its device plugin, or delete the node for another try", name, node, pl.name)}
		}
	}
	if len(big) == 0 {
		return cause{5, ReasonTooBig, fmt.Sprintf("no instance type of NodePool %q fits the pod: it needs %s; %s", pl.name, shortage(c.Requests, places), tooBigAdvice)}
	}
	available := slices.DeleteFunc(slices.Clone(big), func(o place) bool { return !o.offering.Available })
	if len(available) == 0 {
		return cause{7, ReasonNoCapacity, fmt.Sprintf("all %d offerings of NodePool %q that fit the pod are out of capacity now (%s); allow more types, zones or capacity types",
			len(big), pl.name, placeNames(big)+unavailableFor(big))}
	}
	within := slices.DeleteFunc(slices.Clone(available), func(o place) bool { return !pl.allows(pl.usage(o.typ), 1) })
	if len(within) == 0 {
		return cause{8, ReasonLimit, pl.overLimit(available)}
	}
	return p.refused(pl, c, within)
}

const tooBigAdvice = "lower its requests, or allow larger types"

// conflict says why no requirement of the pod can be met by the pool's own; "" if one can.
func (p *pool) conflict(terms []scheduling.Requirements) string {
	own := p.requirements.Intersect(scheduling.FromLabels(p.labels))
	provided := func(key string) bool {
		return scheduling.WellKnown(key) || key == ebsZoneLabel || slices.ContainsFunc(p.Types, func(t *cloudprovider.InstanceType) bool { _, ok := t.Labels[key]; return ok })
	}
	first := ""
	for _, t := range terms {
		key := own.Conflict(t, provided)
		switch {
		case key == "":
			return ""
		case first != "":
		case scheduling.Restricted(key):
			first = fmt.Sprintf("the pod asks for %s, a label that no NodePool may set; remove it from the pod", t[key])
		default:
			have := "has no such label"
			if r, ok := own[key]; ok {
				have = "has " + r.String()
			}
			first = fmt.Sprintf("the pod asks for %s; NodePool %q %s; change one of them, or add a NodePool", t[key], p.name, have)
		}
	}
	if first == "" {
		return "the pod's node affinity has no term that a node could match"
	}
	return first
}
