// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
)

// Requests are the effective requests of one pod as the scheduler counts them (init containers, sidecars, overhead,
// pod-level resources), plus pods: 1. Limits stand in for missing requests: the API server does that for real pods,
// nobody does it for pods made from a DaemonSet's template.
func Requests(pod *v1.Pod) v1.ResourceList {
	out := resourcehelper.PodRequests(withLimitDefaults(pod), resourcehelper.PodResourcesOptions{UseStatusResources: true})
	out[v1.ResourcePods] = *resource.NewQuantity(1, resource.DecimalSI)
	return out
}

// withLimitDefaults copies the pod only if some container limits what it does not request.
func withLimitDefaults(pod *v1.Pod) *v1.Pod {
	if !anyMissing(pod.Spec.Containers) && !anyMissing(pod.Spec.InitContainers) {
		return pod
	}
	pod = pod.DeepCopy()
	for _, cs := range [][]v1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range cs {
			for name, q := range cs[i].Resources.Limits {
				if _, ok := cs[i].Resources.Requests[name]; ok {
					continue
				}
				if cs[i].Resources.Requests == nil {
					cs[i].Resources.Requests = v1.ResourceList{}
				}
				cs[i].Resources.Requests[name] = q
			}
		}
	}
	return pod
}

func anyMissing(containers []v1.Container) bool {
	for _, c := range containers {
		for name := range c.Resources.Limits {
			if _, ok := c.Resources.Requests[name]; !ok {
				return true
			}
		}
	}
	return false
}

// Add sums lists, resource by resource.
func Add(lists ...v1.ResourceList) v1.ResourceList {
	out := v1.ResourceList{}
	for _, l := range lists {
		for name, q := range l {
			sum := out[name]
			sum.Add(q)
			out[name] = sum
		}
	}
	return out
}

// Sub is a minus b. Resources that only b has come out negative.
func Sub(a, b v1.ResourceList) v1.ResourceList {
	out := Add(a)
	for name, q := range b {
		d := out[name]
		d.Sub(q)
		out[name] = d
	}
	return out
}

// Times is n times the list; n is not negative.
func Times(l v1.ResourceList, n int) v1.ResourceList {
	out := make(v1.ResourceList, len(l))
	for name, q := range l {
		q = q.DeepCopy()
		q.Mul(int64(n))
		out[name] = q
	}
	return out
}

// Max is the larger quantity of each resource of either list.
func Max(a, b v1.ResourceList) v1.ResourceList {
	out := Add(a)
	for name, q := range b {
		if have, ok := out[name]; !ok || have.Cmp(q) < 0 {
			out[name] = q.DeepCopy()
		}
	}
	return out
}

// Min is the smaller quantity of each resource that both lists have.
func Min(a, b v1.ResourceList) v1.ResourceList {
	out := make(v1.ResourceList, len(a))
	for name, q := range a {
		other, ok := b[name]
		if !ok {
			continue
		}
		if other.Cmp(q) < 0 {
			q = other
		}
		out[name] = q.DeepCopy()
	}
	return out
}

// Fits says whether want is at most have in every resource that want asks for. A resource that have lacks counts as
// zero, and a negative one fits nothing, not even a request of zero.
func Fits(want, have v1.ResourceList) bool {
	for name, q := range want {
		h, ok := have[name]
		if (ok || !q.IsZero()) && q.Cmp(h) > 0 {
			return false
		}
	}
	for _, h := range have {
		if h.Sign() < 0 {
			return false
		}
	}
	return true
}
