// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// nodeOvercommit: no node over its allocatable at any moment.
type nodeOvercommit struct {
	noFinish

	used map[string]map[corev1.ResourceName]int64 // by node, then resource
	pods map[types.UID]share                      // what each pod adds to used
	over map[string]bool                          // nodes already reported, while they stay over
}

type share struct {
	node  string
	units map[corev1.ResourceName]int64
}

func newNodeOvercommit(*input) invariant {
	return &nodeOvercommit{
		used: map[string]map[corev1.ResourceName]int64{},
		pods: map[types.UID]share{},
		over: map[string]bool{},
	}
}

func (n *nodeOvercommit) step(w *world, c *change, report reporter) {
	switch {
	case c.Pod != nil:
		before := n.pods[c.Pod.UID]
		var after share
		if c.Op != Deleted {
			after = share{node: c.Pod.Spec.NodeName, units: effectiveRequests(c.Pod)}
		}
		n.add(before, -1)
		n.add(after, +1)
		n.pods[c.Pod.UID] = after
		n.judge(w, c, after.node, "after pod "+podName(c.Pod), report)
		if before.node != after.node {
			n.judge(w, c, before.node, "after pod "+podName(c.Pod), report)
		}
	case c.Node != nil:
		n.judge(w, c, c.Node.Name, "after its own update", report)
	}
}

func (n *nodeOvercommit) add(s share, sign int64) {
	if len(s.units) == 0 {
		return
	}
	used := n.used[s.node]
	if used == nil {
		used = map[corev1.ResourceName]int64{}
		n.used[s.node] = used
	}
	for resource, units := range s.units {
		used[resource] += sign * units
	}
}

func (n *nodeOvercommit) judge(w *world, c *change, name, when string, report reporter) {
	node := w.nodes[name]
	if node == nil {
		delete(n.over, name)
		return
	}
	allocatable := amounts(node.Status.Allocatable)
	var exceeded []corev1.ResourceName
	for resource, used := range n.used[name] {
		if used > allocatable[resource] {
			exceeded = append(exceeded, resource)
		}
	}
	was := n.over[name]
	n.over[name] = len(exceeded) > 0
	if was || len(exceeded) == 0 {
		return
	}
	slices.Sort(exceeded)
	for _, resource := range exceeded {
		unit := ""
		if resource == corev1.ResourceCPU {
			unit = "m"
		}
		report(c.Time, name, "%s: %d%s requested of %d%s allocatable, %d pods, %s (resourceVersion %d)",
			resource, n.used[name][resource], unit, allocatable[resource], unit,
			n.used[name][corev1.ResourcePods], when, c.revision)
	}
}
