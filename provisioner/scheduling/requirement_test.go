// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"math"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

const (
	in     = v1.NodeSelectorOpIn
	notIn  = v1.NodeSelectorOpNotIn
	exists = v1.NodeSelectorOpExists
	absent = v1.NodeSelectorOpDoesNotExist
	gt     = v1.NodeSelectorOpGt
	lt     = v1.NodeSelectorOpLt
	gte    = karpv1.NodeSelectorOpGte
	lte    = karpv1.NodeSelectorOpLte
)

func TestIntersect(t *testing.T) {
	t.Parallel()
	r := func(op v1.NodeSelectorOperator, values ...string) Requirement {
		return NewRequirement("k", op, values...)
	}
	tests := map[string]struct {
		a, b            Requirement
		want            string
		wantSatisfiable bool
	}{
		"lists":                      {r(in, "a", "b"), r(in, "b", "c"), "k In [b]", true},
		"lists apart":                {r(in, "a"), r(in, "b"), "k In", false},
		"list and its complement":    {r(in, "a"), r(notIn, "a"), "k In", false},
		"complements":                {r(notIn, "a"), r(notIn, "b"), "k NotIn [a b]", true},
		"exists and complement":      {r(exists), r(notIn, "a"), "k NotIn [a], k Exists", true},
		"exists and absent":          {r(exists), r(absent), "k In", false},
		"complement and absent":      {r(notIn, "a"), r(absent), "k DoesNotExist", true},
		"list and bounds":            {r(in, "1", "5", "x"), r(gt, "1"), "k In [5]", true},
		"bounds":                     {r(gt, "1"), r(lt, "9"), "k Gte [2], k Lte [8]", true},
		"inclusive bounds":           {r(gte, "3"), r(lte, "3"), "k Gte [3], k Lte [3]", true},
		"bounds apart":               {r(gt, "5"), r(lt, "5"), "k In", false},
		"bounds and the only number": {r(gte, "3"), r(lte, "3"), "k Gte [3], k Lte [3]", true},
		"tightest bounds":            {r(gte, "3"), r(gte, "4"), "k Gte [4]", true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := tc.a.Intersect(tc.b)
			if got.String() != tc.want || got.Satisfiable() != tc.wantSatisfiable {
				t.Errorf("got %s, satisfiable %v; want %s, %v", got, got.Satisfiable(), tc.want, tc.wantSatisfiable)
			}
			if back := tc.b.Intersect(tc.a); back.String() != tc.want {
				t.Errorf("the other way: %s", back)
			}
		})
	}
}

func TestBoundsThatHoldNothing(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]Requirement{
		"Gt of the largest integer": NewRequirement("k", gt, strconv.Itoa(math.MaxInt64)),
		"Lt of the smallest":        NewRequirement("k", lt, strconv.Itoa(math.MinInt64)),
		"no integer":                NewRequirement("k", gt, "x"),
		"no value":                  NewRequirement("k", lt),
		"unknown operator":          NewRequirement("k", "Like", "x"),
		"all numbers excluded":      NewRequirement("k", gte, "3").Intersect(NewRequirement("k", lte, "4")).Intersect(NewRequirement("k", notIn, "3", "4")),
	} {
		if r.Satisfiable() || r.Has("3") || r.AllowsAbsent() {
			t.Errorf("%s: %s is satisfiable", name, r)
		}
	}
}

func TestMatches(t *testing.T) {
	t.Parallel()
	labels := map[string]string{"a": "1", "zone": "z"}
	tests := map[string]struct {
		r    Requirement
		want bool
	}{
		"In":                   {NewRequirement("a", in, "1"), true},
		"In, other":            {NewRequirement("a", in, "2"), false},
		"In, absent":           {NewRequirement("b", in, "1"), false},
		"NotIn, absent":        {NewRequirement("b", notIn, "1"), true},
		"NotIn":                {NewRequirement("a", notIn, "1"), false},
		"Exists":               {NewRequirement("a", exists), true},
		"Exists, absent":       {NewRequirement("b", exists), false},
		"DoesNotExist":         {NewRequirement("a", absent), false},
		"DoesNotExist, absent": {NewRequirement("b", absent), true},
		"Gt":                   {NewRequirement("a", gt, "0"), true},
		"Lt":                   {NewRequirement("a", lt, "1"), false},
		"Gte":                  {NewRequirement("a", gte, "1"), true},
		"Lte":                  {NewRequirement("a", lte, "0"), false},
		"Gt of a word":         {NewRequirement("zone", gt, "0"), false},
		"Gt, absent":           {NewRequirement("b", gt, "0"), false},
		"Exists and NotIn":     {NewRequirement("b", exists).Intersect(NewRequirement("b", notIn, "x")), false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := tc.r.Matches(labels); got != tc.want {
				t.Errorf("%s matches %v: %v, want %v", tc.r, labels, got, tc.want)
			}
		})
	}
}

// draw makes any requirement over few values.
func draw(t *rapid.T, label string) Requirement {
	op := rapid.SampledFrom([]v1.NodeSelectorOperator{in, notIn, exists, absent, gt, lt, gte, lte}).Draw(t, label)
	switch op {
	case in, notIn:
		return NewRequirement("k", op, rapid.SliceOf(value).Draw(t, label)...)
	case exists, absent:
		return NewRequirement("k", op)
	default:
		return NewRequirement("k", op, strconv.Itoa(rapid.IntRange(-2, 5).Draw(t, label)))
	}
}

var value = rapid.SampledFrom([]string{"-1", "0", "1", "2", "3", "4", "a", ""})

// TestIntersectMeansBoth checks the algebra against its meaning: what both accept, value by value and for absence.
func TestIntersectMeansBoth(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := draw(t, "a"), draw(t, "b")
		both := a.Intersect(b)
		v := value.Draw(t, "v")
		if got, want := both.Has(v), a.Has(v) && b.Has(v); got != want {
			t.Fatalf("%s and %s: has %q %v, want %v", a, b, v, got, want)
		}
		if got, want := both.AllowsAbsent(), a.AllowsAbsent() && b.AllowsAbsent(); got != want {
			t.Fatalf("%s and %s: allows absent %v, want %v", a, b, got, want)
		}
		if both.Has(v) && !both.Satisfiable() {
			t.Fatalf("%s has %q and is not satisfiable", both, v)
		}
		if any, ok := both.Any(); ok && !both.Has(any) {
			t.Fatalf("%s does not have its own %q", both, any)
		}
	})
}

// TestSpecsRoundTrip checks that stating and reading a requirement keeps its meaning.
func TestSpecsRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := draw(t, "a").Intersect(draw(t, "b"))
		r.MinValues = rapid.IntRange(0, 3).Draw(t, "min")
		back := FromSpecs(r.Specs())["k"]
		v := value.Draw(t, "v")
		if back.Has(v) != r.Has(v) || back.AllowsAbsent() != r.AllowsAbsent() || back.MinValues != r.MinValues {
			t.Fatalf("%s became %s", r, back)
		}
	})
}

func FuzzRequirement(f *testing.F) {
	f.Add("k", "Gt", "5", "7")
	f.Add("beta.kubernetes.io/arch", "In", "amd64", "")
	f.Fuzz(func(t *testing.T, key, op, a, b string) {
		r := NewRequirement(key, v1.NodeSelectorOperator(op), a, b)
		one := NewRequirement(key, v1.NodeSelectorOperator(op), a)
		both := r.Intersect(one)
		if both.Has(b) && !(r.Has(b) && one.Has(b)) {
			t.Errorf("%s has %q, which %s and %s do not share", both, b, r, one)
		}
		if diff := cmp.Diff(r.String(), r.Intersect(r).String()); diff != "" {
			t.Errorf("intersecting with itself changes it:\n%s", diff)
		}
	})
}
