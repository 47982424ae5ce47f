// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

type metaOwner = metav1.OwnerReference

type termKind int

const (
	spread termKind = iota
	affinity
	antiAffinity
)

// topologyTerm is one hard constraint of a pod on where other pods are.
type topologyTerm struct {
	kind       termKind
	key        string
	maxSkew    int
	selector   *metav1.LabelSelector
	labelKeys  []string
	namespaces []string
	// anyNamespace is true if a namespace selector decides; it is taken to match.
	anyNamespace bool
}

// topologyTerms lists the pod's DoNotSchedule spread and required (anti-)affinity terms.
func topologyTerms(pod *v1.Pod) []topologyTerm {
	var out []topologyTerm
	for _, c := range pod.Spec.TopologySpreadConstraints {
		if c.WhenUnsatisfiable == v1.DoNotSchedule {
			out = append(out, topologyTerm{
				kind: spread, key: c.TopologyKey, maxSkew: int(c.MaxSkew),
				selector: c.LabelSelector, labelKeys: c.MatchLabelKeys, namespaces: []string{pod.Namespace},
			})
		}
	}
	if a := pod.Spec.Affinity; a != nil {
		if a.PodAffinity != nil {
			out = appendAffinity(out, affinity, pod, a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
		}
		if a.PodAntiAffinity != nil {
			out = appendAffinity(out, antiAffinity, pod, a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
		}
	}
	return out
}

func appendAffinity(out []topologyTerm, kind termKind, pod *v1.Pod, terms []v1.PodAffinityTerm) []topologyTerm {
	for _, t := range terms {
		n := t.Namespaces
		if len(n) == 0 && t.NamespaceSelector == nil {
			n = []string{pod.Namespace}
		}
		out = append(out, topologyTerm{
			kind: kind, key: t.TopologyKey, selector: t.LabelSelector,
			labelKeys: slices.Concat(t.MatchLabelKeys, t.MismatchLabelKeys), namespaces: n,
			anyNamespace: t.NamespaceSelector != nil,
		})
	}
	return out
}

// selects says whether the term looks at the pod. It is a guess on the safe side (label keys of matchLabelKeys are
// not compared), good enough to size nodes and to pin zones; what is allowed is asked of the Fitter.
func (t topologyTerm) selects(pod *v1.Pod) bool {
	if !t.anyNamespace && !slices.Contains(t.namespaces, pod.Namespace) {
		return false
	}
	sel, err := metav1.LabelSelectorAsSelector(t.selector)
	return err == nil && sel.Matches(labels.Set(pod.Labels))
}

// manners is how a class spreads over nodes and domains, read from its first pod: it guides sizes, nothing else.
type manners struct {
	// keys are the topology keys of its own terms, hostname excepted, in order.
	keys []string
	// perNode is the most pods of the class that one node can take by ports and hostname terms; 0 is no bound.
	perNode int
	// oneNode: the class wants to be together on one node.
	oneNode bool
	// perDomain is 1 if pods of the class exclude each other from a domain of keys; 0 is no bound.
	perDomain int
	// even: the class is spread over the domains of keys.
	even bool
}

func mannersOf(pod *v1.Pod) manners {
	var m manners
	atMost := func(n int) {
		if m.perNode == 0 || n < m.perNode {
			m.perNode = n
		}
	}
	if len(hostPorts(pod)) > 0 {
		atMost(1)
	}
	for _, t := range topologyTerms(pod) {
		self := t.selects(pod)
		host := t.key == v1.LabelHostname
		switch {
		case host && self && t.kind == antiAffinity:
			atMost(1)
		case host && self && t.kind == spread:
			atMost(max(t.maxSkew, 1))
		case host && self && t.kind == affinity:
			m.oneNode = true
		case !host && self && t.kind == antiAffinity:
			m.perDomain = 1
		case !host && self && t.kind == spread:
			m.even = true
		}
		if !host && !slices.Contains(m.keys, t.key) {
			m.keys = append(m.keys, t.key)
		}
	}
	slices.Sort(m.keys)
	return m
}
