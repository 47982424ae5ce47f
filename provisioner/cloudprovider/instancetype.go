// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"maps"

	v1 "k8s.io/api/core/v1"
)

// InstanceType is one machine size as one NodeClass would launch it: allocatable depends on the class's kubelet
// settings, image family and disks. Shared between snapshots: never written after it was published.
type InstanceType struct {
	Name string
	// Labels are what every node of the type carries, whatever its offering: instance type, arch, os and the
	// provider's own instance labels. A key that the type does not have is absent.
	Labels map[string]string
	// Capacity and Allocatable are per machine, with the resource names a kubelet reports. Overhead lies between
	// them: what kubelet and system keep, and what is left free before pods are evicted.
	Capacity    v1.ResourceList
	Overhead    v1.ResourceList
	Allocatable v1.ResourceList
	// OnRequest are resources among these that only a machine has whose NodeClaim requests them; see For.
	OnRequest []v1.ResourceName
	// Offerings are every (zone, capacity type) in which the class could launch the type, available or not.
	Offerings []Offering
	// Unpriced are those of which no price is known: they cannot be compared with others and are never launched.
	Unpriced []Offering
	// ImageID is the image that the class boots on it, Settings a digest of all settings of the class that its
	// allocatable follows from. Machines that have type, image and settings in common have the same allocatable.
	ImageID, Settings string
}

// For returns capacity and allocatable of a machine of the type that is launched for a NodeClaim with the requests. The
// lists are shared: they must not be changed.
func (t *InstanceType) For(requests v1.ResourceList) (capacity, allocatable v1.ResourceList) {
	capacity, allocatable = t.Capacity, t.Allocatable
	for i, name := range t.OnRequest {
		if asked := requests[name]; !asked.IsZero() {
			continue
		}
		if i == 0 || len(capacity) == len(t.Capacity) {
			capacity, allocatable = maps.Clone(capacity), maps.Clone(allocatable)
		}
		delete(capacity, name)
		delete(allocatable, name)
	}
	return capacity, allocatable
}

// Offering is one place and way to buy an instance type.
type Offering struct {
	Zone   string
	ZoneID string
	// CapacityType is karpenter.sh/capacity-type: on-demand, spot or reserved.
	CapacityType string
	// Price is USD per hour.
	Price float64
	// Available is false while the offering is known to be out of capacity; Unavailable is why, in the cloud's words.
	Available   bool
	Unavailable string
}

// Labels are the labels that the offering adds to those of its type.
func (o Offering) Labels() map[string]string {
	l := map[string]string{
		v1.LabelTopologyZone:         o.Zone,
		"karpenter.sh/capacity-type": o.CapacityType,
	}
	if o.ZoneID != "" {
		l["topology.k8s.aws/zone-id"] = o.ZoneID
	}
	return l
}
