// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"
)

func list(kv ...string) v1.ResourceList {
	out := v1.ResourceList{}
	for i := 0; i < len(kv); i += 2 {
		out[v1.ResourceName(kv[i])] = resource.MustParse(kv[i+1])
	}
	return out
}

func container(requests, limits v1.ResourceList) v1.Container {
	return v1.Container{Resources: v1.ResourceRequirements{Requests: requests, Limits: limits}}
}

func sidecar(requests v1.ResourceList) v1.Container {
	always := v1.ContainerRestartPolicyAlways
	c := container(requests, nil)
	c.RestartPolicy = &always
	return c
}

func TestRequests(t *testing.T) {
	t.Parallel()
	cpu := func(q string) v1.ResourceList { return list("cpu", q) }
	tests := map[string]struct {
		spec v1.PodSpec
		want v1.ResourceList
	}{
		"nothing": {v1.PodSpec{Containers: []v1.Container{{}}}, list("pods", "1")},
		"sum":     {v1.PodSpec{Containers: []v1.Container{container(cpu("1"), nil), container(list("cpu", "1", "memory", "1Gi"), nil)}}, list("cpu", "2", "memory", "1Gi", "pods", "1")},
		"sidecar before the init container": {v1.PodSpec{
			InitContainers: []v1.Container{sidecar(cpu("100m")), container(cpu("200m"), nil)},
			Containers:     []v1.Container{container(cpu("100m"), nil)},
		}, list("cpu", "300m", "pods", "1")},
		"sidecar after the init container": {v1.PodSpec{
			InitContainers: []v1.Container{container(cpu("200m"), nil), sidecar(cpu("100m"))},
			Containers:     []v1.Container{container(cpu("100m"), nil)},
		}, list("cpu", "200m", "pods", "1")},
		"overhead":         {v1.PodSpec{Overhead: list("cpu", "250m", "memory", "120Mi"), Containers: []v1.Container{container(cpu("1"), nil)}}, list("cpu", "1250m", "memory", "120Mi", "pods", "1")},
		"limits only":      {v1.PodSpec{Containers: []v1.Container{container(nil, cpu("200m"))}}, list("cpu", "200m", "pods", "1")},
		"limits over less": {v1.PodSpec{Containers: []v1.Container{container(cpu("1"), list("cpu", "10000", "memory", "1Gi"))}}, list("cpu", "1", "memory", "1Gi", "pods", "1")},
		"pod level": {
			v1.PodSpec{Resources: &v1.ResourceRequirements{Requests: cpu("3")}, Containers: []v1.Container{container(cpu("1"), nil)}},
			list("cpu", "3", "pods", "1"),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := tc.spec.DeepCopy()
			if diff := cmp.Diff(tc.want, Requests(&v1.Pod{Spec: tc.spec})); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(*before, tc.spec); diff != "" {
				t.Errorf("the pod was changed:\n%s", diff)
			}
		})
	}
}

func TestFits(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		want, have v1.ResourceList
		fits       bool
	}{
		"equal":                {list("cpu", "1"), list("cpu", "1"), true},
		"more":                 {list("cpu", "1001m"), list("cpu", "1"), false},
		"missing":              {list("gpu", "1"), list("cpu", "1"), false},
		"zero of missing":      {list("gpu", "0"), list("cpu", "1"), true},
		"something negative":   {list("cpu", "0"), list("cpu", "1", "memory", "-1"), false},
		"nothing from nothing": {list(), list(), true},
	}
	for name, tc := range tests {
		if got := Fits(tc.want, tc.have); got != tc.fits {
			t.Errorf("%s: %v, want %v", name, got, tc.fits)
		}
	}
}

func TestArithmetic(t *testing.T) {
	t.Parallel()
	a, b := list("cpu", "1", "memory", "1Gi"), list("cpu", "500m", "gpu", "2")
	for name, tc := range map[string]struct{ got, want v1.ResourceList }{
		"Add":   {Add(a, b), list("cpu", "1500m", "memory", "1Gi", "gpu", "2")},
		"Sub":   {Sub(a, b), list("cpu", "500m", "memory", "1Gi", "gpu", "-2")},
		"Max":   {Max(a, b), list("cpu", "1", "memory", "1Gi", "gpu", "2")},
		"Min":   {Min(a, b), list("cpu", "500m")},
		"Times": {Times(a, 3), list("cpu", "3", "memory", "3Gi")},
	} {
		if diff := cmp.Diff(tc.want, tc.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if diff := cmp.Diff(list("cpu", "1", "memory", "1Gi"), a); diff != "" {
		t.Errorf("an argument was changed:\n%s", diff)
	}
}

// TestSubUndoesAdd also checks that what was added fits into the sum.
func TestSubUndoesAdd(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) v1.ResourceList {
			out := v1.ResourceList{}
			for _, name := range []v1.ResourceName{"cpu", "memory"} {
				out[name] = *resource.NewMilliQuantity(rapid.Int64Range(0, 1e6).Draw(t, label), resource.DecimalSI)
			}
			return out
		}
		a, b := draw("a"), draw("b")
		if diff := cmp.Diff(a, Sub(Add(a, b), b)); diff != "" {
			t.Fatal(diff)
		}
		if !Fits(a, Add(a, b)) || !Fits(Min(a, b), a) || !Fits(a, Max(a, b)) {
			t.Fatalf("%v, %v: order is broken", a, b)
		}
	})
}
