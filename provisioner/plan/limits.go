// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
)

// limit is one of a pool's limits.
type limit struct {
	name       v1.ResourceName
	max, inUse resource.Quantity
	// left is what this plan may still use, in units.
	left int64
}

func limitsOf(p Pool) []limit {
	var out []limit
	for name, q := range p.NodePool.Spec.Limits {
		used := p.InUse[name]
		out = append(out, limit{name: name, max: q, inUse: used, left: units(name, q) - units(name, used)})
	}
	slices.SortFunc(out, func(a, b limit) int {
		if a.name < b.name {
			return -1
		}
		return 1
	})
	return out
}

// usage is what a machine of the type takes of each limit.
func (p *pool) usage(t *cloudprovider.InstanceType) []int64 {
	out := make([]int64, len(p.limits))
	for i, l := range p.limits {
		if l.name == nodesLimit {
			out[i] = 1
		} else if q, ok := t.Capacity[l.name]; ok {
			out[i] = units(l.name, q)
		}
	}
	return out
}

// allows says whether n machines with this usage stay within the limits.
func (p *pool) allows(use []int64, n int64) bool {
	for i, u := range use {
		if u > 0 && u*n > p.limits[i].left {
			return false
		}
	}
	return true
}

func (p *pool) take(use []int64, n int64) {
	for i, u := range use {
		p.limits[i].left -= u * n
	}
}
