// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/jit-scheduler/jit-scheduler/provisioner/scheduling"
)

// defaultMaxTypes is Karpenter's bound on the instance types of one launch.
const defaultMaxTypes = 60

// Plan decides for every pending pod of the snapshot: left for ready nodes, joined to a NodeClaim on its way, put on a
// NodeClaim to open, or refused with a reason. Equal snapshots and equal answers of f give equal results.
func Plan(s Snapshot, f Fitter) Result {
	p := newPlanner(s, f)
	for _, band := range p.bands() {
		p.place(band)
	}
	p.retry()
	return p.result()
}

// planner is the state of one Plan call.
type planner struct {
	s       Snapshot
	f       Fitter
	dims    dims
	classes []*class
	pools   []*pool
	// cands are all offered candidates; verdicts and masks of classes are parallel to it.
	cands   []*candidate
	byName  map[string]int
	offered bool
	// nodes are the open NodeClaims, then those this plan opens.
	nodes []*node
}

// class is a Class in work.
type class struct {
	*Class
	manners
	request []int64
	// rest are the pods that have no place yet, in order.
	rest  []*v1.Pod
	ready []*v1.Pod
	// pins are the topology keys that must not be left open on a node with such a pod: its own, and those by which
	// another class of the plan looks at it.
	pins []string
	// verdicts are the Fitter's answers for the candidates, nil until asked.
	verdicts []Verdict
	// tiers are where the class can go, best first; what is in one tier competes by price.
	tiers []tier
	tier  int
	// preference is the heaviest preferred node affinity term that some candidate satisfies, nil if there is none.
	preference scheduling.Requirements
	// terminal is why no node at all can help.
	terminal string
	// domainOK are the candidates that passed when the class first opened a node in a domain (dependent classes).
	domainOK map[string][]bool
	placedIn map[string]int
	// caps are how many pods a machine may hold and still leave the options diverse, by group of candidates.
	caps map[diversity]int
}

// node can take pods: an open NodeClaim, or one that this plan opens.
type node struct {
	name string
	free []int64
	// chosen is nil for open NodeClaims.
	chosen *candidate
	loads  []load
}

type load struct {
	class *class
	pods  []*v1.Pod
}

func newPlanner(s Snapshot, f Fitter) *planner {
	if s.MaxTypes <= 0 {
		s.MaxTypes = defaultMaxTypes
	}
	if s.FirstTypes <= 0 {
		s.FirstTypes = s.MaxTypes
	}
	p := &planner{s: s, f: f, dims: dimsOf(s.Classes, s.Pools)}
	p.classes = make([]*class, 0, len(s.Classes))
	for i := range s.Classes {
		c := &s.Classes[i]
		if len(c.Pods) == 0 {
			continue
		}
		p.classes = append(p.classes, &class{
			Class: c, manners: mannersOf(c.Pods[0]), request: p.dims.vector(c.Requests),
			rest: slices.Clone(c.Pods), domainOK: map[string][]bool{}, placedIn: map[string]int{},
		})
	}
	p.pin()
	p.pools = newPools(s.Pools)
	for i := range s.Open {
		p.nodes = append(p.nodes, &node{name: s.Open[i].Name, free: p.dims.vector(s.Open[i].Free)})
	}
	return p
}

// pin finds for each class the topology keys that some term of the plan looks at its pods by.
func (p *planner) pin() {
	for _, c := range p.classes {
		c.pins = slices.Clone(c.keys)
		for _, watcher := range p.classes {
			if watcher.Independent {
				continue
			}
			for _, t := range topologyTerms(watcher.Pods[0]) {
				if t.key != v1.LabelHostname && !slices.Contains(c.pins, t.key) && t.selects(c.Pods[0]) {
					c.pins = append(c.pins, t.key)
				}
			}
		}
	}
}

// bands cuts the classes where the priority changes: what is planned together must not cost the more important pods
// their place.
func (p *planner) bands() [][]*class {
	var out [][]*class
	for i, c := range p.classes {
		if i > 0 && priority(c) == priority(p.classes[i-1]) {
			out[len(out)-1] = append(out[len(out)-1], c)
			continue
		}
		out = append(out, []*class{c})
	}
	return out
}

func priority(c *class) int32 {
	if pr := c.Pods[0].Spec.Priority; pr != nil {
		return *pr
	}
	return 0
}

// place plans one band: ready nodes, then classes whose pods do not influence each other, all at once, then the
// others pod by pod.
func (p *planner) place(band []*class) {
	for _, c := range band {
		p.takeReady(c)
		if len(c.rest) > 0 {
			c.terminal = pinnedElsewhere(c.Pods[0])
		}
	}
	open := slices.DeleteFunc(slices.Clone(band), func(c *class) bool { return len(c.rest) == 0 || c.terminal != "" })
	if len(open) == 0 {
		return
	}
	p.offer()
	var independent []*class
	for _, c := range open {
		if c.Independent {
			p.join(c)
			independent = append(independent, c)
		}
	}
	p.openTogether(independent)
	for _, c := range open {
		if !c.Independent {
			p.placeOneByOne(c)
		}
	}
}

// retry gives classes that depend on others another try once those are placed, until nothing moves.
func (p *planner) retry() {
	for moved := true; moved; {
		moved = false
		for _, c := range p.classes {
			if c.Independent || len(c.rest) == 0 || c.terminal != "" {
				continue
			}
			before := len(c.rest)
			c.verdicts = nil
			p.placeOneByOne(c)
			moved = moved || len(c.rest) < before
		}
	}
}

// takeReady leaves pods to ready nodes and says how many.
func (p *planner) takeReady(c *class) int {
	waiting := *c.Class
	waiting.Pods = c.rest
	n := min(p.f.Ready(&waiting, len(c.rest)), len(c.rest))
	if n <= 0 {
		return 0
	}
	c.ready = append(c.ready, c.rest[:n]...)
	c.rest = c.rest[n:]
	return n
}

// pinnedElsewhere says why no new node can ever help the pod, as far as the pod itself tells.
func pinnedElsewhere(pod *v1.Pod) string {
	if ownedByDaemonSet(pod) {
		return "the pod belongs to a DaemonSet and runs only on the node it was made for"
	}
	required := requiredNodeTerms(pod)
	byName := len(required) > 0
	for _, t := range required {
		byName = byName && slices.ContainsFunc(t.MatchFields, func(r v1.NodeSelectorRequirement) bool {
			return r.Key == "metadata.name" && r.Operator == v1.NodeSelectorOpIn
		})
	}
	if byName {
		return "its node affinity names an existing node (metadata.name)"
	}
	return ""
}

func requiredNodeTerms(pod *v1.Pod) []v1.NodeSelectorTerm {
	if a := pod.Spec.Affinity; a != nil && a.NodeAffinity != nil {
		if r := a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution; r != nil {
			return r.NodeSelectorTerms
		}
	}
	return nil
}

// put assigns the class's next n pods to the node.
func (p *planner) put(c *class, n *node, count int) {
	pods := c.rest[:count:count]
	c.rest = c.rest[count:]
	subtract(n.free, c.request, count)
	p.f.Place(n.name, pods...)
	if n.chosen != nil {
		c.placedIn[domainOf(n.chosen, c.keys)] += count
	}
	for i := range n.loads {
		if n.loads[i].class == c {
			n.loads[i].pods = append(n.loads[i].pods, pods...)
			return
		}
	}
	n.loads = append(n.loads, load{c, pods})
}
