// SPDX-License-Identifier: Apache-2.0

package lifecycle

import v1 "k8s.io/api/core/v1"

// hasRoomFor says whether one more pod fits beside what is reserved and the DaemonSets. It looks only at what the pod
// asks for: the rest fits already.
func (c *claim) hasRoomFor(requests v1.ResourceList) bool {
	for name, q := range requests {
		if q.IsZero() {
			continue
		}
		total := q.DeepCopy()
		total.Add(c.sum[name])
		total.Add(c.daemons[name])
		if total.Cmp(c.room[name]) > 0 {
			return false
		}
	}
	return true
}

// add and sub change a list that nobody else has.
func add(into, l v1.ResourceList) {
	for name, q := range l {
		sum := into[name].DeepCopy()
		sum.Add(q)
		into[name] = sum
	}
}

func sub(from, l v1.ResourceList) {
	for name, q := range l {
		rest := from[name].DeepCopy()
		rest.Sub(q)
		from[name] = rest
	}
}
