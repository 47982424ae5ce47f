// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"math"
	"slices"

	v1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	"github.com/jit-scheduler/jit-scheduler/provisioner/scheduling"
)

// simple is a Fitter with the rules of the default plugins for resources, labels, taints, host ports, spread and
// (anti-)affinity, over nodes in memory.
type simple struct {
	nodes map[string]*simpleNode
	order []string
	fits  int
}

type simpleNode struct {
	node             *v1.Node
	pods             []*v1.Pod
	daemons          []*v1.Pod
	ready, candidate bool
}

func newSimple() *simple { return &simple{nodes: map[string]*simpleNode{}} }

func (f *simple) add(n *simpleNode) *simpleNode {
	if f.nodes[n.node.Name] == nil {
		f.order = append(f.order, n.node.Name)
	}
	f.nodes[n.node.Name] = n
	return n
}

func (f *simple) Ready(c *Class, limit int) int {
	placed := 0
	for _, name := range f.order {
		n := f.nodes[name]
		for n.ready && placed < limit && f.verdict(c.Pods[placed], n).Fits {
			n.pods = append(n.pods, c.Pods[placed])
			placed++
		}
	}
	return placed
}

func (f *simple) Fit(pod *v1.Pod, nodes []string) []Verdict {
	out := make([]Verdict, len(nodes))
	for i, name := range nodes {
		f.fits++
		n := f.nodes[name]
		if n == nil {
			panic("unknown node " + name)
		}
		out[i] = f.verdict(pod, n)
	}
	return out
}

func (f *simple) Place(node string, pods ...*v1.Pod) {
	n := f.nodes[node]
	if n.candidate {
		panic("placed on a candidate")
	}
	n.pods = append(n.pods, pods...)
}

func (f *simple) Candidates(nodes []Candidate) [][]*v1.Pod {
	f.order = slices.DeleteFunc(f.order, func(name string) bool {
		if f.nodes[name].candidate {
			delete(f.nodes, name)
			return true
		}
		return false
	})
	out := make([][]*v1.Pod, len(nodes))
	for i, c := range nodes {
		n := f.add(&simpleNode{node: c.Node, candidate: true})
		for _, d := range c.Daemons {
			if f.static(d, n) == "" {
				out[i] = append(out[i], d)
			}
		}
		n.daemons = out[i]
	}
	return out
}

func (f *simple) Open(candidate, name string) {
	c := f.nodes[candidate]
	n := c.node.DeepCopy()
	n.Name = name
	n.Labels[v1.LabelHostname] = name
	f.add(&simpleNode{node: n, daemons: c.daemons})
}

// static checks what no other pod influences.
func (f *simple) static(pod *v1.Pod, n *simpleNode) string {
	if pod.Spec.NodeName != "" && pod.Spec.NodeName != n.node.Name {
		return "NodeName"
	}
	_, untolerated := corev1helpers.FindMatchingUntoleratedTaint(klog.Background(), n.node.Spec.Taints, pod.Spec.Tolerations, func(t *v1.Taint) bool {
		return t.Effect != v1.TaintEffectPreferNoSchedule
	}, false)
	if untolerated {
		return "TaintToleration"
	}
	if ok, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(n.node); err != nil || !ok {
		return "NodeAffinity"
	}
	return ""
}

func (f *simple) verdict(pod *v1.Pod, n *simpleNode) Verdict {
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == "missing" {
			return Verdict{Plugin: "VolumeBinding", Reason: `persistentvolumeclaim "missing" not found`, Terminal: true}
		}
	}
	if plugin := f.static(pod, n); plugin != "" {
		return Verdict{Plugin: plugin, Reason: plugin + " refuses"}
	}
	all := slices.Concat(n.pods, n.daemons)
	for _, p := range hostPorts(pod) {
		for _, o := range all {
			for _, q := range hostPorts(o) {
				if p.HostPort == q.HostPort && p.Protocol == q.Protocol {
					return Verdict{Plugin: "NodePorts", Reason: "node(s) didn't have free ports for the requested pod ports"}
				}
			}
		}
	}
	used := scheduling.Requests(pod)
	for _, o := range all {
		used = scheduling.Add(used, scheduling.Requests(o))
	}
	for name, q := range scheduling.Requests(pod) {
		have := n.node.Status.Allocatable[name]
		if u := used[name]; !q.IsZero() && u.Cmp(have) > 0 {
			return Verdict{Plugin: "NodeResourcesFit", Reason: fmt.Sprintf("Insufficient %s", name)}
		}
	}
	return f.topology(pod, n)
}

// topology checks spread and affinity, counting candidates as empty domains.
func (f *simple) topology(pod *v1.Pod, n *simpleNode) Verdict {
	for _, t := range topologyTerms(pod) {
		value, ok := n.node.Labels[t.key]
		counts, total := f.counts(t, pod)
		here := counts[value]
		switch t.kind {
		case spread:
			least := math.MaxInt
			for _, c := range counts {
				least = min(least, c)
			}
			for _, c := range pod.Spec.TopologySpreadConstraints {
				if c.TopologyKey == t.key && c.MinDomains != nil && len(counts) < int(*c.MinDomains) {
					least = 0
				}
			}
			self := 0
			if t.selects(pod) {
				self = 1
			}
			if !ok || here+self-least > t.maxSkew {
				return Verdict{Plugin: "PodTopologySpread", Reason: "node(s) didn't match pod topology spread constraints"}
			}
		case affinity:
			if !ok || here == 0 && (total > 0 || !t.selects(pod)) {
				return Verdict{Plugin: "InterPodAffinity", Reason: "node(s) didn't match pod affinity rules"}
			}
		case antiAffinity:
			if ok && here > 0 {
				return Verdict{Plugin: "InterPodAffinity", Reason: "node(s) didn't match pod anti-affinity rules"}
			}
		}
	}
	for _, o := range f.nodes {
		for _, other := range o.pods {
			for _, t := range topologyTerms(other) {
				if t.kind == antiAffinity && t.selects(pod) && o.node.Labels[t.key] == n.node.Labels[t.key] {
					return Verdict{Plugin: "InterPodAffinity", Reason: "node(s) didn't satisfy existing pods anti-affinity rules"}
				}
			}
		}
	}
	return Verdict{Fits: true}
}

func (f *simple) counts(t topologyTerm, pod *v1.Pod) (counts map[string]int, total int) {
	counts = map[string]int{}
	for _, o := range f.nodes {
		value, ok := o.node.Labels[t.key]
		if !ok {
			continue
		}
		if t.kind == spread {
			if match, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(o.node); err != nil || !match {
				continue
			}
		}
		counts[value] += 0
		for _, other := range o.pods {
			if t.selects(other) {
				counts[value]++
				total++
			}
		}
	}
	return counts, total
}
