// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/jit-scheduler/jit-scheduler/provisioner/scheduling"
)

func (n *node) pods() []*v1.Pod {
	var out []*v1.Pod
	for _, l := range n.loads {
		out = append(out, l.pods...)
	}
	return out
}

// newNode states the node as its cheapest option.
func (p *planner) newNode(n *node, options []*candidate) NewNode {
	first := options[0]
	out := NewNode{Name: n.name, Pool: first.pool.name, Node: first.renamed(n.name), Daemons: first.daemons, Pods: n.pods()}
	lists := make([]v1.ResourceList, 0, len(n.loads)+len(first.daemons))
	for _, l := range n.loads {
		lists = append(lists, scheduling.Times(l.class.Requests, len(l.pods)))
	}
	for _, d := range first.daemons {
		lists = append(lists, scheduling.Requests(d))
	}
	out.Requests = scheduling.Add(lists...)
	out.Node.Status.Capacity, out.Node.Status.Allocatable = first.typ.For(out.Requests)
	return out
}

// requirementsOf are the pool's requirements and labels, the node affinity of the pods as far as it leaves no choice,
// and what the options have.
func requirementsOf(n *node, options []*candidate) []karpv1.NodeSelectorRequirementWithMinValues {
	first := options[0]
	out := first.pool.requirements.Intersect(scheduling.FromLabels(first.pool.labels))
	for _, key := range first.pool.custom {
		if v, ok := first.node.Labels[key]; ok {
			out.Add(scheduling.NewRequirement(key, v1.NodeSelectorOpIn, v))
		}
	}
	for _, l := range n.loads {
		if terms := scheduling.FromPod(l.pods[0]); len(terms) == 1 {
			for _, r := range terms[0] {
				if r.Satisfiable() && !scheduling.Restricted(r.Key) && r.Key != ebsZoneLabel {
					out.Add(r)
				}
			}
		}
	}
	for _, key := range []string{v1.LabelInstanceTypeStable, v1.LabelTopologyZone, karpv1.CapacityTypeLabelKey} {
		values := map[string]bool{}
		for _, cand := range options {
			if v, ok := cand.node.Labels[key]; ok {
				values[v] = true
			}
		}
		if len(values) > 0 {
			out.Add(scheduling.NewRequirement(key, v1.NodeSelectorOpIn, slices.Sorted(maps.Keys(values))...))
		}
	}
	return out.Specs()
}

func signatureOf(specs []karpv1.NodeSelectorRequirementWithMinValues) string {
	s := &signer{}
	for _, r := range specs {
		s.str(r.Key)
		s.str(string(r.Operator))
		s.num(int64(len(r.Values)))
		for _, v := range r.Values {
			s.str(v)
		}
	}
	return string(s.buf)
}

// undiverse refuses the pods of a node that has no sufficient set of options within the limits.
func undiverse(n *node) []Unplaced {
	var out []Unplaced
	for _, l := range n.loads {
		out = append(out, Unplaced{
			Pods: l.pods, Reason: ReasonLimit,
			Message: sentence("NodePool %q: the machines that its limits and the pods' preferences leave do not meet its minValues; raise spec.limits or lower minValues", n.chosen.pool.name),
		})
	}
	return out
}
