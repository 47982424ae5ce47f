// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"strconv"
	"time"
)

// createFleetReply is shared by all replays of a token; it is not changed after it is built.
type createFleetReply struct {
	FleetID   string          `xml:"fleetId"`
	Errors    []fleetError    `xml:"errorSet>item"`
	Instances []fleetInstance `xml:"fleetInstanceSet>item"`
	created   time.Time
}

type fleetError struct {
	Code      string            `xml:"errorCode"`
	Message   string            `xml:"errorMessage"`
	Lifecycle string            `xml:"lifecycle"`
	Origin    templateOverrides `xml:"launchTemplateAndOverrides"`
}

type fleetInstance struct {
	IDs          []string          `xml:"instanceIds>item"`
	InstanceType string            `xml:"instanceType"`
	Lifecycle    string            `xml:"lifecycle"`
	Zone         string            `xml:"availabilityZone,omitempty"`
	ZoneID       string            `xml:"availabilityZoneId,omitempty"`
	SubnetID     string            `xml:"subnetId,omitempty"`
	Origin       templateOverrides `xml:"launchTemplateAndOverrides"`
}

type templateOverrides struct {
	TemplateID   string `xml:"launchTemplateSpecification>launchTemplateId"`
	TemplateName string `xml:"launchTemplateSpecification>launchTemplateName"`
	Version      string `xml:"launchTemplateSpecification>version"`
	InstanceType string `xml:"overrides>instanceType"`
	SubnetID     string `xml:"overrides>subnetId,omitempty"`
	Zone         string `xml:"overrides>availabilityZone,omitempty"`
	ZoneID       string `xml:"overrides>availabilityZoneId,omitempty"`
	ImageID      string `xml:"overrides>imageId,omitempty"`
	Priority     string `xml:"overrides>priority,omitempty"`
}

func (p *pool) origin() templateOverrides {
	origin := templateOverrides{
		TemplateID: p.template.ID, TemplateName: p.template.Name, Version: "1",
		InstanceType: p.override["InstanceType"], SubnetID: p.override["SubnetId"], Zone: p.override["AvailabilityZone"],
		ImageID: p.override["ImageId"], Priority: p.override["Priority"],
	}
	if p.subnet != nil {
		origin.SubnetID, origin.Zone, origin.ZoneID = p.subnet.id, p.subnet.zone, p.subnet.zoneID
	}
	return origin
}

func (r *createFleetReply) poolErrors() []PoolError {
	var refusals []PoolError
	for _, failure := range r.Errors {
		refusals = append(refusals, PoolError{
			InstanceType: failure.Origin.InstanceType, Zone: failure.Origin.Zone, CapacityType: failure.Lifecycle,
			SubnetID: failure.Origin.SubnetID, Code: failure.Code,
		})
	}
	return refusals
}

// fulfil launches what the pools give, in the order of the strategy, until the target is met.
func (s *Server) fulfil(f *fleet, accessKey string) *createFleetReply {
	f.id = "fleet-" + s.uuid()
	f.order()
	reply := &createFleetReply{FleetID: f.id, created: time.Now()}
	missing := f.target
	for _, p := range f.pools {
		if missing == 0 {
			break
		}
		ids, failure := s.drawFrom(f, p, missing, accessKey)
		if len(ids) > 0 {
			reply.Instances = append(reply.Instances, fleetInstance{
				IDs: ids, InstanceType: p.it.Name, Lifecycle: f.capacityType, Zone: p.subnet.zone, ZoneID: p.subnet.zoneID, SubnetID: p.subnet.id, Origin: p.origin(),
			})
		}
		if failure != nil {
			reply.Errors = append(reply.Errors, fleetError{Code: failure.Code, Message: failure.Message, Lifecycle: f.capacityType, Origin: p.origin()})
		}
		missing -= len(ids)
	}
	return reply
}

// drawFrom launches up to n instances in a pool. The error says why it were fewer.
func (s *Server) drawFrom(f *fleet, p *pool, n int, accessKey string) (ids []string, failure *apiError) {
	if p.err != nil {
		return nil, p.err
	}
	fault := s.fireLocked(f.poolSubject(p, accessKey))
	for i := range n {
		if fault.err != nil && i >= fault.poolLimit {
			return ids, fault.err
		}
		in, failure := s.drawOne(f, p)
		if failure != nil {
			return ids, failure
		}
		ids = append(ids, in.id)
	}
	return ids, nil
}

// drawOne launches one instance in a pool, or says why it cannot.
func (s *Server) drawOne(f *fleet, p *pool) (*instance, *apiError) {
	reservation, failure := s.reservationFor(p)
	if failure != nil {
		return nil, failure
	}
	if reservation == nil && reservedTypes[f.targetType] != "" {
		return nil, errorf("UnfulfillableCapacity", "The launch template names no capacity reservation for %s capacity", f.targetType)
	}
	group, partition, failure := s.place(p)
	if failure != nil {
		return nil, failure
	}
	addresses := s.addressesOf(p.template)
	if s.free(p.subnet) < addresses {
		return nil, errorf("InsufficientFreeAddressesInSubnet", "There are not enough free addresses in subnet '%s' to satisfy the requested number of instances.", p.subnet.id)
	}
	if failure := s.limitReached(f, p, reservation); failure != nil {
		return nil, failure
	}
	in := s.launch(f, p, s.takeAddresses(p.subnet, addresses), reservation)
	in.group, in.partition = group, partition
	return in, nil
}

// limitReached says why not even one more instance fits, and counts it if it does.
func (s *Server) limitReached(f *fleet, p *pool, reservation *CapacityReservation) *apiError {
	if quota, reached := s.quotaReached(f.capacityType, p.it); reached {
		if f.capacityType == spot {
			return errorf("MaxSpotInstanceCountExceeded", "Max spot instance count exceeded")
		}
		return errorf("VcpuLimitExceeded", "You have requested more vCPU capacity than your current vCPU limit of %d allows.", quota)
	}
	if reservation != nil {
		if reservation.Available <= 0 {
			return errorf("ReservationCapacityExceeded", "The capacity reservation %s has no available capacity", reservation.ID)
		}
		reservation.Available--
		return nil
	}
	key := p.it.Name + "/" + p.subnet.zone + "/" + f.capacityType
	if left, limited := s.settings.PoolCapacity[key]; limited {
		if left <= 0 {
			return errorf("InsufficientInstanceCapacity", "We currently do not have sufficient %s capacity in the Availability Zone you requested (%s).", p.it.Name, p.subnet.zone)
		}
		s.settings.PoolCapacity[key] = left - 1
	}
	return nil
}

func (s *Server) uuid() string {
	id := s.hexID("") + s.hexID("")
	return id[:8] + "-" + id[8:12] + "-4" + id[13:16] + "-8" + id[17:20] + "-" + id[20:32]
}

// rootDiskGiB is the size of the disk that holds pods' data: Bottlerocket has a second one for it.
// 0 means that the template does not say.
func (p *pool) rootDiskGiB() int64 {
	data := p.image.rootDevice
	if p.image.bottlerocket() {
		data = "/dev/xvdb"
	}
	for _, mapping := range p.template.data.each("BlockDeviceMapping") {
		if size, err := strconv.ParseInt(mapping["Ebs.VolumeSize"], 10, 64); err == nil && mapping["DeviceName"] == data {
			return size
		}
	}
	return 0
}
