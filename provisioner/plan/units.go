// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"math"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/jit-scheduler/jit-scheduler/provisioner/scheduling"
)

// nodesLimit is the limit on the number of a pool's nodes.
const nodesLimit v1.ResourceName = "nodes"

// units is a quantity as the scheduler counts it: CPU in thousandths, everything else whole.
func units(name v1.ResourceName, q resource.Quantity) int64 {
	if name == v1.ResourceCPU {
		return q.MilliValue()
	}
	return q.Value()
}

// dims maps the resources that this plan's pods ask for to positions of a vector.
type dims []v1.ResourceName

func dimsOf(classes []Class, pools []Pool) dims {
	seen := map[v1.ResourceName]bool{}
	for i := range classes {
		for name, q := range classes[i].Requests {
			if !q.IsZero() {
				seen[name] = true
			}
		}
	}
	for i := range pools {
		for _, d := range pools[i].Daemons { // a machine too small for its daemons is no candidate
			for name := range scheduling.Requests(d) {
				seen[name] = true
			}
		}
	}
	seen[v1.ResourcePods] = true
	var out dims
	for name := range seen {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// vector is the list in the order of dims; resources that it lacks are zero, others are left out.
func (d dims) vector(l v1.ResourceList) []int64 {
	out := make([]int64, len(d))
	for i, name := range d {
		if q, ok := l[name]; ok {
			out[i] = units(name, q)
		}
	}
	return out
}

// times is how many whole requests fit into free.
func times(request, free []int64) int {
	n := int64(math.MaxInt32)
	for i, r := range request {
		if free[i] < 0 {
			return 0
		}
		if r > 0 {
			n = min(n, free[i]/r)
		}
	}
	return int(n)
}

func subtract(free, request []int64, n int) {
	for i := range free {
		free[i] -= request[i] * int64(n)
	}
}
