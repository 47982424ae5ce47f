// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// Requirement is the set of values that one label may have, and whether the label may be absent.
//
// The set is a list of values or the complement of one, cut by inclusive integer bounds. It is more exact than a node
// selector operator: "NotIn a" and "Exists" together are a requirement of their own.
type Requirement struct {
	// Key is the label key, aliases resolved.
	Key string
	// MinValues is how many values the NodeClaim's options must have between them; 0 if not asked for.
	MinValues int

	complement bool
	// present is true if a node without the label does not match.
	present  bool
	values   map[string]struct{}
	gte, lte *int64
}

// NewRequirement makes a requirement of an operator and its values. Operators that it does not know, and bounds that
// are not integers, make a requirement that nothing satisfies, as in the API.
func NewRequirement(key string, op v1.NodeSelectorOperator, values ...string) Requirement {
	r := Requirement{Key: NormalizeKey(key), present: true}
	switch op {
	case v1.NodeSelectorOpIn:
		r.values = valueSet(r.Key, values)
	case v1.NodeSelectorOpNotIn:
		r.complement, r.present, r.values = true, false, valueSet(r.Key, values)
	case v1.NodeSelectorOpExists:
		r.complement = true
	case v1.NodeSelectorOpDoesNotExist:
		r.present = false
	case v1.NodeSelectorOpGt, v1.NodeSelectorOpLt, karpv1.NodeSelectorOpGte, karpv1.NodeSelectorOpLte:
		r.bound(op, values)
	}
	return r
}

// bound reads Gt, Lt, Gte and Lte as inclusive bounds.
func (r *Requirement) bound(op v1.NodeSelectorOperator, values []string) {
	if len(values) != 1 {
		return
	}
	n, err := strconv.ParseInt(values[0], 10, 64)
	if err != nil {
		return
	}
	switch op {
	case v1.NodeSelectorOpGt:
		if n == math.MaxInt64 {
			return
		}
		n++
		r.gte = &n
	case v1.NodeSelectorOpLt:
		if n == math.MinInt64 {
			return
		}
		n--
		r.lte = &n
	case karpv1.NodeSelectorOpGte:
		r.gte = &n
	default:
		r.lte = &n
	}
	r.complement = true
}

func valueSet(key string, values []string) map[string]struct{} {
	set := make(map[string]struct{}, len(values))
	aliases := karpv1.NormalizedLabelValues[key]
	for _, v := range values {
		if alias, ok := aliases[v]; ok {
			v = alias
		}
		set[v] = struct{}{}
	}
	return set
}

// Intersect is what satisfies both; MinValues is the larger one.
func (r Requirement) Intersect(o Requirement) Requirement {
	out := Requirement{
		Key:        r.Key,
		MinValues:  max(r.MinValues, o.MinValues),
		complement: r.complement && o.complement,
		present:    r.present || o.present,
		gte:        tighter(r.gte, o.gte, 1),
		lte:        tighter(r.lte, o.lte, -1),
		values:     map[string]struct{}{},
	}
	switch {
	case out.complement:
		maps.Copy(out.values, r.values)
		maps.Copy(out.values, o.values)
		if out.gte != nil && out.lte != nil && *out.gte > *out.lte {
			return Requirement{Key: r.Key, MinValues: out.MinValues, present: out.present}
		}
		return out
	case r.complement:
		r, o = o, r
	}
	for v := range r.values { // r is a list; o is a list or a complement
		if o.Has(v) && r.inBounds(v) {
			out.values[v] = struct{}{}
		}
	}
	out.gte, out.lte = nil, nil // a list needs no bounds any more
	return out
}

// tighter is the larger bound for sign 1, the smaller one for sign -1.
func tighter(a, b *int64, sign int64) *int64 {
	switch {
	case a == nil:
		return b
	case b == nil || sign**a >= sign**b:
		return a
	default:
		return b
	}
}

// Has says whether a label with this value satisfies the requirement.
func (r Requirement) Has(value string) bool {
	_, listed := r.values[value]
	return listed != r.complement && r.inBounds(value)
}

func (r Requirement) inBounds(value string) bool {
	if r.gte == nil && r.lte == nil {
		return true
	}
	n, err := strconv.ParseInt(value, 10, 64)
	return err == nil && (r.gte == nil || n >= *r.gte) && (r.lte == nil || n <= *r.lte)
}

// AllowsAbsent says whether a node without the label satisfies the requirement.
func (r Requirement) AllowsAbsent() bool { return !r.present }

// Satisfiable says whether any node could satisfy the requirement.
func (r Requirement) Satisfiable() bool {
	if !r.present {
		return true
	}
	if !r.complement {
		return len(r.values) > 0
	}
	_, ok := r.Any()
	return ok
}

// Matches says whether a node with these labels satisfies the requirement.
func (r Requirement) Matches(labels map[string]string) bool {
	v, ok := labels[r.Key]
	if !ok {
		return !r.present
	}
	return r.Has(v)
}

// Values are the listed values in order, nil if the set is not a list.
func (r Requirement) Values() []string {
	if r.complement {
		return nil
	}
	return slices.Sorted(maps.Keys(r.values))
}

// Any is a value that satisfies the requirement, always the same one; false if there is none.
func (r Requirement) Any() (string, bool) {
	if !r.complement {
		if vs := r.Values(); len(vs) > 0 {
			return vs[0], true
		}
		return "", false
	}
	start, step := int64(0), int64(1)
	switch {
	case r.gte != nil:
		start = *r.gte
	case r.lte != nil:
		start, step = min(*r.lte, 0), -1
	}
	for n := start; ; n += step { // ends: fewer than len(values)+1 of the integers are listed
		v := strconv.FormatInt(n, 10)
		if !r.inBounds(v) {
			return "", false
		}
		if r.Has(v) {
			return v, true
		}
		if step > 0 && n == math.MaxInt64 || step < 0 && n == math.MinInt64 {
			return "", false
		}
	}
}

// Specs state the requirement in the form of a NodeClaim. Bounds come out as Gte and Lte; MinValues goes with each.
func (r Requirement) Specs() []karpv1.NodeSelectorRequirementWithMinValues {
	var out []karpv1.NodeSelectorRequirementWithMinValues
	add := func(op v1.NodeSelectorOperator, values ...string) {
		s := karpv1.NodeSelectorRequirementWithMinValues{Key: r.Key, Operator: op, Values: values}
		if r.MinValues > 0 {
			n := r.MinValues
			s.MinValues = &n
		}
		out = append(out, s)
	}
	if !r.complement {
		switch {
		case len(r.values) > 0 || r.present:
			add(v1.NodeSelectorOpIn, r.Values()...)
		default:
			add(v1.NodeSelectorOpDoesNotExist)
		}
		return out
	}
	if r.gte != nil {
		add(karpv1.NodeSelectorOpGte, strconv.FormatInt(*r.gte, 10))
	}
	if r.lte != nil {
		add(karpv1.NodeSelectorOpLte, strconv.FormatInt(*r.lte, 10))
	}
	if len(r.values) > 0 {
		add(v1.NodeSelectorOpNotIn, slices.Sorted(maps.Keys(r.values))...)
	}
	if r.present && r.gte == nil && r.lte == nil {
		add(v1.NodeSelectorOpExists)
	}
	return out
}

// String is the requirement as people write it: "zone In [a b]".
func (r Requirement) String() string {
	var parts []string
	for _, s := range r.Specs() {
		p := fmt.Sprintf("%s %s", s.Key, s.Operator)
		if len(s.Values) > 0 {
			p += fmt.Sprintf(" [%s]", strings.Join(s.Values, " "))
		}
		parts = append(parts, p)
	}
	return strings.Join(parts, ", ")
}
