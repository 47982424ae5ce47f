// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	v1 "k8s.io/api/core/v1"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
)

// class is a resolved EC2NodeClass. Resolve replaces it; the fields below the line are guarded by Provider.mu.
type class struct {
	object  *awsv1.EC2NodeClass // with the status that Resolve returned; never changed
	family  string
	cluster *clusterFacts
	shape   machineShape
	subnets []subnet // most free addresses first
	groups  []string // security group ids
	images  []image
	profile string

	catalogue  *catalogue
	launchable map[string]launchable         // by instance type
	types      []*cloudprovider.InstanceType // as if everything had capacity, by name
	byZone     map[string][]string           // ids of the subnets of a zone
	resolvedAt time.Time                     // zero: not fully, ask again
	profileAt  time.Time                     // when the profile was last looked at

	bootable int // types that an image fits

	// ---
	imagesAt, groupsAt time.Time // when they were last looked up
	shown              []*cloudprovider.InstanceType
	shownSequence      int
}

// launchable is how the class launches a type.
type launchable struct {
	hardware *hardware
	image    image
	maxPods  int64
}

// assemble computes what the class can launch, unless that is the same as before. The error is about the class's kubelet
// settings.
func (c *class) assemble(before *class) error {
	if before != nil && before.types != nil && c.sameAs(before) {
		c.byZone, c.launchable, c.types, c.bootable = before.byZone, before.launchable, before.types, before.bootable
		return nil
	}
	c.byZone = map[string][]string{}
	zoneIDs := map[string]string{}
	for _, s := range c.subnets {
		c.byZone[s.zone] = append(c.byZone[s.zone], s.id)
		zoneIDs[s.zone] = s.zoneID
	}
	c.launchable = map[string]launchable{}
	c.types = nil
	settings := c.settings()
	for _, name := range slices.Sorted(maps.Keys(c.catalogue.types)) {
		h := c.catalogue.types[name]
		chosen, ok := imageFor(c.images, h.labels)
		if !ok {
			continue
		}
		c.bootable++
		if !c.supports(h) {
			continue
		}
		t, err := c.typeOf(h, zoneIDs)
		if err != nil {
			return err
		}
		if len(t.Offerings) == 0 && len(t.Unpriced) == 0 {
			continue
		}
		c.launchable[name] = launchable{hardware: h, image: chosen, maxPods: h.maxPods(&c.shape)}
		t.ImageID, t.Settings = chosen.ID, settings
		c.types = append(c.types, t)
	}
	return nil
}

// typeOf is the type as the class would launch it: one that it cannot launch has no available offering. The error is
// about the class's kubelet settings.
func (c *class) typeOf(h *hardware, zoneIDs map[string]string) (*cloudprovider.InstanceType, error) {
	size, err := h.size(&c.shape)
	if err != nil {
		return nil, fmt.Errorf("kubelet.%w", err)
	}
	t := &cloudprovider.InstanceType{
		Name: h.name, Labels: h.labels, Capacity: size.capacity, Overhead: size.overhead, Allocatable: size.allocatable,
	}
	t.Offerings, t.Unpriced = c.offerings(h, zoneIDs)
	if h.devices[awsv1.ResourceEFA] > 0 {
		t.OnRequest = onRequest
	}
	return t, nil
}

// onRequest is shared by all types that have it.
var onRequest = []v1.ResourceName{awsv1.ResourceEFA}

// sameAs says that the generation before, resolved again, comes to the same.
func (c *class) sameAs(before *class) bool {
	places := func(of *class) []subnet {
		list := slices.Clone(of.subnets)
		for i := range list {
			list[i].free, list[i].readAt = 0, time.Time{}
		}
		slices.SortFunc(list, func(a, b subnet) int { return cmp.Compare(a.id, b.id) })
		return list
	}
	sameImage := func(a, b image) bool {
		return a.ID == b.ID && requirementsKey(a.Requirements) == requirementsKey(b.Requirements)
	}
	return c.catalogue.version == before.catalogue.version && slices.Equal(places(c), places(before)) && slices.EqualFunc(c.images, before.images, sameImage)
}

// supports says whether the type can do what the class wants.
func (c *class) supports(h *hardware) bool {
	spec := &c.object.Spec
	switch {
	case unbootable()[bootPair{c.family, h.family}]:
		return false
	case spec.ConnectionTracking != nil && !h.nitro:
		return false
	case spec.CPUOptions != nil && spec.CPUOptions.NestedVirtualization != nil && *spec.CPUOptions.NestedVirtualization == "enabled" && !h.nested:
		return false
	}
	return true
}

// offerings are the type's in the zones of the class; those without a price cannot be compared with others and are
// listed apart.
func (c *class) offerings(h *hardware, zoneIDs map[string]string) (offerings, unpriced []cloudprovider.Offering) {
	for _, zone := range c.catalogue.zones[h.name] {
		zoneID, selected := zoneIDs[zone]
		if !selected {
			continue
		}
		for _, capacityType := range h.capacityTypes {
			o := cloudprovider.Offering{Zone: zone, ZoneID: zoneID, CapacityType: capacityType}
			price, ok := c.catalogue.prices.of(h, &o)
			if !ok {
				unpriced = append(unpriced, o)
				continue
			}
			o.Price, o.Available = price, c.supports(h)
			offerings = append(offerings, o)
		}
	}
	return offerings, unpriced
}

// show returns the types with what EC2 has refused lately marked. Only types with a change are copied.
func (c *class) show(u *unavailable, rooms map[string]room) []*cloudprovider.InstanceType {
	c.shownSequence = u.sequence
	c.shown = c.types
	full := c.fullZones(rooms)
	if u.empty() && len(full) == 0 {
		return c.shown
	}
	c.shown = slices.Clone(c.types)
	for i, t := range c.types {
		c.shown[i] = c.withUnavailable(t, u, full)
	}
	return c.shown
}

func (c *class) withUnavailable(t *cloudprovider.InstanceType, u *unavailable, full map[string]string) *cloudprovider.InstanceType {
	h := c.launchable[t.Name].hardware
	var changed *cloudprovider.InstanceType
	for i, offering := range t.Offerings {
		why := cmp.Or(full[offering.Zone], u.blocks(h, offering.Zone, offering.CapacityType, "", c.byZone[offering.Zone]))
		if why == "" {
			continue
		}
		if changed == nil {
			clone := *t
			clone.Offerings = slices.Clone(t.Offerings)
			changed = &clone
		}
		changed.Offerings[i].Available, changed.Offerings[i].Unavailable = false, why
	}
	if changed == nil {
		return t
	}
	return changed
}

// InstanceTypes implements cloudprovider.Interface. The slice is shared: it must not be changed. Until something
// changes, the same slice is returned.
func (p *Provider) InstanceTypes(of *awsv1.EC2NodeClass) ([]*cloudprovider.InstanceType, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.resolved(of)
	if c == nil {
		return nil, cloudprovider.ErrNotReady
	}
	p.unavailable.expire(time.Now())
	if c.shown != nil && c.shownSequence == p.unavailable.sequence {
		return c.shown, nil
	}
	return c.show(p.unavailable, p.roomsOf(c)), nil
}

// resolved returns what this generation of the class was resolved to, nil if it was not. The caller holds p.mu.
func (p *Provider) resolved(of *awsv1.EC2NodeClass) *class {
	c := p.classes[of.Name]
	if c == nil || c.object.UID != of.UID || c.object.Generation != of.Generation {
		return nil
	}
	return c
}
