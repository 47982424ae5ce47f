// SPDX-License-Identifier: Apache-2.0

package allocatable

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
)

// Key says which machines a measurement is about: one instance type that boots one image with one set of settings
// (InstanceType.ImageID and Settings).
type Key struct{ InstanceType, Image, Settings string }

// KeyOf is the key of what a class launches.
func KeyOf(t *cloudprovider.InstanceType) Key { return Key{t.Name, t.ImageID, t.Settings} }

// measured are the resources that follow from type, image and settings alone. Those of device plugins do not: a
// machine with a broken GPU says nothing about the next one.
var measured = []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage, v1.ResourcePods}

// entry is what machines of a key have.
type entry struct {
	allocatable v1.ResourceList
	// node is the one that reported it; only that one may raise it again.
	node string
	at   time.Time
}

// refreshAfter is how old the time of an entry may become while its machines keep coming.
const refreshAfter = 7 * 24 * time.Hour

// Book is all that was measured. The zero value is not ready, use New. Not safe for concurrent use.
type Book struct {
	entries map[Key]entry
	version int
}

// New makes an empty Book.
func New() *Book { return &Book{entries: map[Key]entry{}} }

// Version changes whenever Apply may answer differently, but for the passage of time.
func (b *Book) Version() int { return b.version }

// Knows says whether a machine of the key was measured.
func (b *Book) Knows(key Key) bool {
	_, ok := b.entries[key]
	return ok
}

// Observe notes what a node reports. It says whether that taught anything; a report without CPU or memory does not:
// that kubelet has not looked at its machine yet.
func (b *Book) Observe(key Key, node string, reported v1.ResourceList, now time.Time) bool {
	sizes := only(reported)
	if key.Image == "" || sizes.Cpu().IsZero() || sizes.Memory().IsZero() {
		return false
	}
	old, ok := b.entries[key]
	if ok && old.node != node {
		lower := least(old.allocatable, sizes)
		if same(lower, old.allocatable) {
			node = old.node
		}
		sizes = lower
	}
	if ok && same(sizes, old.allocatable) {
		if now.Sub(old.at) < refreshAfter {
			return false
		}
		b.entries[key] = entry{sizes, node, now}
		return true
	}
	b.entries[key] = entry{sizes, node, now}
	b.version++
	return true
}

// only keeps the measured resources that are there.
func only(l v1.ResourceList) v1.ResourceList {
	out := v1.ResourceList{}
	for _, name := range measured {
		if q, ok := l[name]; ok && q.Sign() > 0 {
			out[name] = q
		}
	}
	return out
}

// least is the smaller of two lists, resource by resource; what only one has counts.
func least(a, b v1.ResourceList) v1.ResourceList {
	out := v1.ResourceList{}
	for _, name := range measured {
		qa, inA := a[name]
		qb, inB := b[name]
		switch {
		case inA && (!inB || qa.Cmp(qb) <= 0):
			out[name] = qa
		case inB:
			out[name] = qb
		}
	}
	return out
}

func same(a, b v1.ResourceList) bool { return equality.Semantic.DeepEqual(a, b) }

// Apply returns the types with what is known of their machines in place of the estimate. Types that nothing is known
// of are the same objects, and so is the slice if that holds for all. until is when the answer may change by itself,
// zero: never.
func (b *Book) Apply(types []*cloudprovider.InstanceType, now time.Time) (sized []*cloudprovider.InstanceType, until time.Time) {
	if len(b.entries) == 0 {
		return types, time.Time{}
	}
	kin, until := b.kinOf(types, now)
	sized = types
	for i, t := range types {
		as := t
		if e, ok := b.entries[KeyOf(t)]; ok {
			as = resized(t, e.allocatable)
		} else if k := kin[family{t.ImageID, t.Settings}]; k != nil {
			as = k.doubt(t)
		}
		if as == t {
			continue
		}
		if &sized[0] == &types[0] {
			sized = slices.Clone(types)
		}
		sized[i] = as
	}
	return sized, until
}

// resized is the type with other allocatable. Capacity moves with it: most of what an estimate gets wrong is what
// the machine has, not what the kubelet keeps, and allocatable is never more than capacity.
func resized(t *cloudprovider.InstanceType, allocatable v1.ResourceList) *cloudprovider.InstanceType {
	var out *cloudprovider.InstanceType
	for name, is := range allocatable {
		guess, ok := t.Allocatable[name]
		if !ok || guess.Cmp(is) == 0 {
			continue
		}
		if out == nil {
			clone := *t
			clone.Allocatable, clone.Capacity = t.Allocatable.DeepCopy(), t.Capacity.DeepCopy()
			out = &clone
		}
		more := is.DeepCopy()
		more.Sub(guess)
		total := out.Capacity[name]
		total.Add(more)
		out.Allocatable[name], out.Capacity[name] = is, total
	}
	if out == nil {
		return t
	}
	return out
}
