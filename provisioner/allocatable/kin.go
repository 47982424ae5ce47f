// SPDX-License-Identifier: Apache-2.0

package allocatable

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
)

// doubtFor is how long a shortfall tells against types that nobody has measured. After that one of them may be tried:
// a pod for which it is the only chance must not wait for ever.
const doubtFor = time.Hour

// family are the types that boot the same image with the same settings.
type family struct{ image, settings string }

// kin is what the measured types of a family say about the others.
type kin struct {
	shorts map[v1.ResourceName][]shortfall
	// good are the resources of which some type has what was estimated.
	good map[v1.ResourceName]bool
}

// shortfall is by how much one type has less than estimated, in the resource's own unit (thousandths for CPU).
type shortfall struct{ estimate, missing int64 }

// doubted are the resources whose estimate goes wrong for all types alike. Addresses for pods are counted for each
// type by itself.
var doubted = []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage}

// kinOf gathers what the measured ones among the types say; until is when the oldest doubt ends.
func (b *Book) kinOf(types []*cloudprovider.InstanceType, now time.Time) (of map[family]*kin, until time.Time) {
	of = map[family]*kin{}
	for _, t := range types {
		e, ok := b.entries[KeyOf(t)]
		if !ok {
			continue
		}
		at := family{t.ImageID, t.Settings}
		k := of[at]
		if k == nil {
			k = &kin{shorts: map[v1.ResourceName][]shortfall{}, good: map[v1.ResourceName]bool{}}
			of[at] = k
		}
		ends := e.at.Add(doubtFor)
		if k.learn(t, e.allocatable, now.Before(ends)) && (until.IsZero() || ends.Before(until)) {
			until = ends
		}
	}
	return of, until
}

// learn compares a type with what it is; true if it told against the others.
func (k *kin) learn(t *cloudprovider.InstanceType, is v1.ResourceList, recent bool) bool {
	told := false
	for _, name := range doubted {
		guess, ok := t.Allocatable[name]
		have, reported := is[name]
		if !ok || !reported {
			continue
		}
		missing := units(name, guess) - units(name, have)
		switch {
		case missing <= 0:
			k.good[name] = true
		case recent:
			k.shorts[name] = append(k.shorts[name], shortfall{units(name, guess), missing})
			told = true
		}
	}
	return told
}

// doubt takes off a type what it must be feared to lack: the least that any of its kin lacks, by share or by amount,
// and nothing if one of them has all.
func (k *kin) doubt(t *cloudprovider.InstanceType) *cloudprovider.InstanceType {
	less := v1.ResourceList{}
	for _, name := range doubted {
		guess, ok := t.Allocatable[name]
		if !ok || k.good[name] || len(k.shorts[name]) == 0 {
			continue
		}
		total := units(name, guess)
		missing := total
		for _, s := range k.shorts[name] {
			share := float64(s.missing) / float64(s.estimate)
			missing = min(missing, s.missing, int64(share*float64(total)))
		}
		less[name] = quantity(name, total-missing)
	}
	if len(less) == 0 {
		return t
	}
	return resized(t, less)
}

func units(name v1.ResourceName, q resource.Quantity) int64 {
	if name == v1.ResourceCPU {
		return q.MilliValue()
	}
	return q.Value()
}

func quantity(name v1.ResourceName, n int64) resource.Quantity {
	if name == v1.ResourceCPU {
		return *resource.NewMilliQuantity(n, resource.DecimalSI)
	}
	return *resource.NewQuantity(n, resource.BinarySI)
}
