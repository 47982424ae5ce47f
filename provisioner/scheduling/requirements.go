// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"maps"
	"slices"

	// Its init makes the provider's labels well known and its domains restricted.
	_ "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	v1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// Requirements are requirements by key; all must hold. The zero value asks for nothing and cannot be added to: use
// NewRequirements.
type Requirements map[string]Requirement

// NewRequirements intersects requirements key by key.
func NewRequirements(rs ...Requirement) Requirements {
	out := make(Requirements, len(rs))
	for _, r := range rs {
		out.Add(r)
	}
	return out
}

// FromSpecs reads the requirements of a NodePool or NodeClaim.
func FromSpecs(specs []karpv1.NodeSelectorRequirementWithMinValues) Requirements {
	out := make(Requirements, len(specs))
	for _, s := range specs {
		r := NewRequirement(s.Key, s.Operator, s.Values...)
		if s.MinValues != nil {
			r.MinValues = *s.MinValues
		}
		out.Add(r)
	}
	return out
}

// FromLabels asks for exactly these labels: a node selector, or what a template puts on its nodes.
func FromLabels(labels map[string]string) Requirements {
	out := make(Requirements, len(labels))
	for k, v := range labels {
		out.Add(NewRequirement(k, v1.NodeSelectorOpIn, v))
	}
	return out
}

// FromTerm reads the label part of a node selector term (matchFields are not about labels).
func FromTerm(term v1.NodeSelectorTerm) Requirements {
	out := make(Requirements, len(term.MatchExpressions))
	for _, e := range term.MatchExpressions {
		out.Add(NewRequirement(e.Key, e.Operator, e.Values...))
	}
	return out
}

// FromPod gives what the pod requires of a node's labels, one entry for each required node affinity term (any of them
// is enough), the node selector included in each. A pod without required terms has one entry. Preferences are not
// requirements. An empty term matches nothing and gives no entry; nil means that no node can match.
func FromPod(pod *v1.Pod) []Requirements {
	selector := FromLabels(pod.Spec.NodeSelector)
	required := requiredTerms(pod)
	if required == nil {
		return []Requirements{selector}
	}
	var out []Requirements
	for _, t := range required.NodeSelectorTerms {
		if len(t.MatchExpressions) == 0 && len(t.MatchFields) == 0 {
			continue
		}
		out = append(out, selector.Intersect(FromTerm(t)))
	}
	return out
}

func requiredTerms(pod *v1.Pod) *v1.NodeSelector {
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.NodeAffinity == nil {
		return nil
	}
	return pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

// Add narrows the key of r.
func (rs Requirements) Add(r Requirement) {
	if old, ok := rs[r.Key]; ok {
		r = old.Intersect(r)
	}
	rs[r.Key] = r
}

// Intersect is what satisfies both.
func (rs Requirements) Intersect(o Requirements) Requirements {
	out := make(Requirements, len(rs)+len(o))
	maps.Copy(out, rs)
	for _, r := range o {
		out.Add(r)
	}
	return out
}

// Matches says whether a node with these labels satisfies all requirements.
func (rs Requirements) Matches(labels map[string]string) bool {
	for _, r := range rs {
		if !r.Matches(labels) {
			return false
		}
	}
	return true
}

// MatchesFunc is Matches for labels that are not in one map: get answers for a key.
func (rs Requirements) MatchesFunc(get func(key string) (string, bool)) bool {
	for key, r := range rs {
		if v, ok := get(key); ok && !r.Has(v) || !ok && r.present {
			return false
		}
	}
	return true
}

// Conflict is the first key, in order, on which no node of rs can satisfy what o asks for; "" if there is none.
// A key of o that rs does not speak of is a conflict unless open says that nodes of rs may have it all the same
// (well-known labels, which come with the instance type) or o does not need it.
func (rs Requirements) Conflict(o Requirements, open func(key string) bool) string {
	for _, key := range slices.Sorted(maps.Keys(o)) {
		want := o[key]
		have, ok := rs[key]
		switch {
		case !ok && !want.AllowsAbsent() && !open(key):
			return key
		case !ok && !want.Satisfiable():
			return key
		case ok && !have.Intersect(want).Satisfiable():
			return key
		}
	}
	return ""
}

// Specs state the requirements in the form of a NodeClaim, ordered by key.
func (rs Requirements) Specs() []karpv1.NodeSelectorRequirementWithMinValues {
	out := make([]karpv1.NodeSelectorRequirementWithMinValues, 0, len(rs))
	for _, key := range slices.Sorted(maps.Keys(rs)) {
		out = append(out, rs[key].Specs()...)
	}
	return out
}

// NormalizeKey resolves the old names of well-known labels.
func NormalizeKey(key string) string {
	if k, ok := karpv1.NormalizedLabels[key]; ok {
		return k
	}
	return key
}

// WellKnown says whether the label comes with the machine (instance type, zone, ...), so that a NodePool need not
// mention it.
func WellKnown(key string) bool { return karpv1.WellKnownLabels.Has(key) }

// Restricted says whether neither NodePools nor pods may ask for the label: the hostname and Karpenter's own domains
// and their subdomains, well-known labels excepted.
func Restricted(key string) bool { return karpv1.IsRestrictedLabel(key) != nil }
