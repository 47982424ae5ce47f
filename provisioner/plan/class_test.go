// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

func claim(name string) func(*v1.Pod) {
	return func(p *v1.Pod) {
		p.Spec.Volumes = append(p.Spec.Volumes, v1.Volume{Name: "d", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: name}}})
	}
}

func TestSignature(t *testing.T) {
	t.Parallel()
	label := func(k, v string) func(*v1.Pod) { return func(p *v1.Pod) { p.Labels = map[string]string{k: v} } }
	tests := map[string]struct {
		a, b      *v1.Pod
		wantEqual bool
	}{
		"names and owners":       {pod("a"), pod("b", func(p *v1.Pod) { p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "r"}} }), true},
		"equal quantities":       {pod("a", asks("cpu=1")), pod("b", asks("cpu=1000m")), true},
		"quantities":             {pod("a", asks("cpu=1")), pod("b", asks("cpu=2")), false},
		"namespace":              {pod("a"), pod("b", namespace("other")), false},
		"labels":                 {pod("a", app("x")), pod("b", app("y")), false},
		"template hash":          {pod("a", label("pod-template-hash", "1")), pod("b", label("pod-template-hash", "2")), true},
		"template hash, spread":  {hashSpread("a", "1"), hashSpread("b", "2"), false},
		"selector":               {pod("a", selects("k", "v")), pod("b"), false},
		"tolerations":            {pod("a", tolerate("k")), pod("b"), false},
		"priority":               {pod("a", priorityOf(1)), pod("b"), false},
		"port":                   {pod("a", port(1)), pod("b", port(2)), false},
		"claim":                  {pod("a", claim("x")), pod("b", claim("y")), false},
		"config map":             {pod("a", configMap), pod("b"), true},
		"annotations":            {pod("a"), pod("b", func(p *v1.Pod) { p.Annotations = map[string]string{"x": "y"} }), true},
		"preferred affinity":     {pod("a", prefers(1, "k", "v")), pod("b"), false},
		"split of equal letters": {pod("a", selects("ab", "c")), pod("b", selects("a", "bc")), false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Signature(tc.a) == Signature(tc.b); got != tc.wantEqual {
				t.Errorf("equal: %v, want %v", got, tc.wantEqual)
			}
		})
	}
}

func configMap(p *v1.Pod) {
	p.Spec.Volumes = append(p.Spec.Volumes, v1.Volume{Name: "c", VolumeSource: v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{}}})
}

func hashSpread(name, hash string) *v1.Pod {
	p := pod(name, spreadOver(zone, 1))
	p.Labels["pod-template-hash"] = hash
	p.Spec.TopologySpreadConstraints[0].MatchLabelKeys = []string{"pod-template-hash"}
	return p
}

func TestIndependent(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		pod  *v1.Pod
		want bool
	}{
		"plain":                 {pod("a", asks("cpu=1")), true},
		"selector":              {pod("a", selects("k", "v")), true},
		"preferred affinity":    {pod("a", prefers(1, "k", "v")), true},
		"config map":            {pod("a", configMap), true},
		"hard spread":           {pod("a", spreadOver(zone, 1)), false},
		"soft spread":           {pod("a", spreadOver(zone, 1), func(p *v1.Pod) { p.Spec.TopologySpreadConstraints[0].WhenUnsatisfiable = v1.ScheduleAnyway }), true},
		"affinity":              {pod("a", near(zone, "x")), false},
		"anti-affinity":         {pod("a", awayFrom(zone, "x")), false},
		"host port":             {pod("a", port(80)), false},
		"claim":                 {pod("a", claim("x")), false},
		"dynamic resources":     {pod("a", func(p *v1.Pod) { p.Spec.ResourceClaims = []v1.PodResourceClaim{{Name: "gpu"}} }), false},
		"init container's port": {pod("a", initAsks("cpu=1"), func(p *v1.Pod) { p.Spec.InitContainers[0].Ports = []v1.ContainerPort{{HostPort: 1}} }), false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Independent(tc.pod); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

// TestClassesKeepOrder checks that classes partition the pods by signature and keep the order of the queue.
func TestClassesKeepOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		pods := rapid.SliceOf(rapid.Custom(func(t *rapid.T) *v1.Pod {
			return podOf("p", "cpu="+rapid.SampledFrom([]string{"1", "2", "3"}).Draw(t, "cpu"))
		})).Draw(t, "pods")
		at := map[*v1.Pod]int{}
		for i, p := range pods {
			at[p] = i
		}
		total, first := 0, -1
		for _, c := range Classes(pods) {
			if at[c.Pods[0]] < first {
				t.Fatal("classes are out of order")
			}
			first = at[c.Pods[0]]
			total += len(c.Pods)
			for i, p := range c.Pods {
				if i > 0 && at[p] < at[c.Pods[i-1]] {
					t.Fatal("pods are out of order")
				}
				if Signature(p) != Signature(c.Pods[0]) {
					t.Fatal("unequal pods in a class")
				}
			}
		}
		if total != len(pods) {
			t.Fatalf("%d pods of %d", total, len(pods))
		}
	})
}
