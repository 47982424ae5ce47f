// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"regexp"
	"strconv"
)

type stateItem struct {
	Code int    `xml:"code"`
	Name string `xml:"name"`
}

func newStateItem(state instanceState) stateItem {
	return stateItem{Code: stateCodes[state], Name: string(state)}
}

type groupItem struct {
	ID   string `xml:"groupId"`
	Name string `xml:"groupName"`
}

type interfaceItem struct {
	ID          string      `xml:"networkInterfaceId"`
	Type        string      `xml:"interfaceType"`
	Status      string      `xml:"status"`
	SubnetID    string      `xml:"subnetId"`
	VPCID       string      `xml:"vpcId"`
	OwnerID     string      `xml:"ownerId"`
	PrivateIP   string      `xml:"privateIpAddress"`
	PrivateDNS  string      `xml:"privateDnsName"`
	Groups      []groupItem `xml:"groupSet>item"`
	DeviceIndex int         `xml:"attachment>deviceIndex"`
	CardIndex   int         `xml:"attachment>networkCardIndex"`
	Attached    string      `xml:"attachment>status"`
}

type instanceItem struct {
	ID             string          `xml:"instanceId"`
	ImageID        string          `xml:"imageId"`
	State          stateItem       `xml:"instanceState"`
	PrivateDNS     string          `xml:"privateDnsName"`
	Type           string          `xml:"instanceType"`
	LaunchTime     string          `xml:"launchTime"`
	ClientToken    string          `xml:"clientToken,omitempty"`
	Placement      placementItem   `xml:"placement"`
	SubnetID       string          `xml:"subnetId"`
	VPCID          string          `xml:"vpcId"`
	PrivateIP      string          `xml:"privateIpAddress"`
	Architecture   string          `xml:"architecture"`
	Hypervisor     string          `xml:"hypervisor,omitempty"`
	RootDevice     string          `xml:"rootDeviceName"`
	RootDeviceType string          `xml:"rootDeviceType"`
	Virtualization string          `xml:"virtualizationType"`
	EBSOptimized   bool            `xml:"ebsOptimized"`
	Monitoring     string          `xml:"monitoring>state"`
	Profile        *profileRef     `xml:"iamInstanceProfile"`
	Lifecycle      string          `xml:"instanceLifecycle,omitempty"`
	SpotRequestID  string          `xml:"spotInstanceRequestId,omitempty"`
	ReservationID  string          `xml:"capacityReservationId,omitempty"`
	Reservation    reservationSpec `xml:"capacityReservationSpecification"`
	StateReason    *stateReason    `xml:"stateReason"`
	Groups         []groupItem     `xml:"groupSet>item"`
	Interfaces     []interfaceItem `xml:"networkInterfaceSet>item"`
	Tags           []tagItem       `xml:"tagSet>item"`
}

type placementItem struct {
	Zone      string `xml:"availabilityZone"`
	ZoneID    string `xml:"availabilityZoneId"`
	Tenancy   string `xml:"tenancy"`
	GroupID   string `xml:"groupId,omitempty"`
	GroupName string `xml:"groupName,omitempty"`
	Partition int    `xml:"partitionNumber,omitempty"`
}

type profileRef struct {
	ARN string `xml:"arn"`
	ID  string `xml:"id"`
}

type reservationSpec struct {
	Preference string `xml:"capacityReservationPreference"`
	TargetID   string `xml:"capacityReservationTarget>capacityReservationId,omitempty"`
}

type stateReason struct {
	Code    string `xml:"code"`
	Message string `xml:"message"`
}

type reservationItem struct {
	ID        string         `xml:"reservationId"`
	OwnerID   string         `xml:"ownerId"`
	Instances []instanceItem `xml:"instancesSet>item"`
}

type describeInstancesReply struct {
	Reservations []reservationItem `xml:"reservationSet>item"`
	NextToken    string            `xml:"nextToken,omitempty"`
}

var instanceID = regexp.MustCompile(`^i-([0-9a-f]{8}|[0-9a-f]{17})$`)

// instancesByID finds all ids, or none: one that is malformed or unknown fails the call.
func (s *Server) instancesByID(ids []string, known func(*instance) bool) ([]*instance, error) {
	var found []*instance
	for _, id := range ids {
		if !instanceID.MatchString(id) {
			return nil, errorf("InvalidInstanceID.Malformed", "Invalid id: \"%s\"", id)
		}
		in := s.instances[id]
		if in == nil || !known(in) {
			return nil, errorf("InvalidInstanceID.NotFound", "The instance ID '%s' does not exist", id)
		}
		found = append(found, in)
	}
	return found, nil
}

func describeInstances(s *Server, r *request) (any, error) {
	ids, filters := r.form.list("InstanceId"), r.form.filters()
	if len(ids) > 0 && r.form.get("MaxResults") != "" {
		return nil, errorf("InvalidParameterCombination", "The parameter instancesSet cannot be used with the parameter maxResults")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	candidates, err := s.instancesByID(ids, s.visible)
	if err != nil {
		return nil, err
	}
	if r.form.bool("DryRun") {
		return nil, errDryRun()
	}
	if len(ids) == 0 {
		candidates = s.launched
	}
	var found []reservationItem
	for _, in := range candidates {
		ok, err := matches(filters, in.tags, s.attributesOf(in))
		if err != nil {
			return nil, err
		}
		if ok && s.visible(in) && !r.effect.omits(in) {
			found = append(found, reservationItem{ID: "r-" + in.id[2:], OwnerID: s.opts.AccountID, Instances: []instanceItem{s.instanceItem(in)}})
		}
	}
	items, token, err := page(r.form, found, 5, 1000, 1000)
	return describeInstancesReply{Reservations: items, NextToken: token}, err
}

// omits says whether a fault leaves the instance out of the reply.
func (e *effect) omits(in *instance) bool {
	for _, rule := range e.omit {
		of := Rule{
			InstanceType: rule.InstanceType, Zone: rule.Zone, CapacityType: rule.CapacityType, SubnetID: rule.SubnetID,
			ReservationID: rule.ReservationID, InstanceID: rule.InstanceID, Tags: rule.Tags,
		}
		if of.concerns(in.nodeSubject("")) {
			return true
		}
	}
	return false
}

func (s *Server) attributesOf(in *instance) attributes {
	return attributes{
		"instance-state-name": {string(in.state)}, "instance-state-code": {strconv.Itoa(stateCodes[in.state])}, "instance-id": {in.id},
		"instance-type": {in.it.Name}, "private-dns-name": {s.privateDNSName(in.addr)}, "private-ip-address": {in.addr.String()},
		"subnet-id": {in.subnet.id}, "vpc-id": {s.vpc}, "availability-zone": {in.subnet.zone}, "image-id": {in.image.id},
		"client-token": {in.fleet.token}, "instance-lifecycle": {in.lifecycle()},
	}
}

func (in *instance) lifecycle() string {
	if in.capacityType == spot {
		return spot
	}
	if in.reservation != nil {
		return in.reservation.lifecycle()
	}
	return ""
}

func (s *Server) instanceItem(in *instance) instanceItem {
	data, dns := in.template.data, s.privateDNSName(in.addr)
	item := instanceItem{
		ID: in.id, ImageID: in.image.id, State: newStateItem(in.state), PrivateDNS: dns, Type: in.it.Name, LaunchTime: timestamp(in.launchedAt),
		Placement: placementItem{Zone: in.subnet.zone, ZoneID: in.subnet.zoneID, Tenancy: orDefault(data["Placement.Tenancy"], "default")},
		SubnetID:  in.subnet.id, VPCID: s.vpc, PrivateIP: in.addr.String(), Architecture: ec2Arch(in.it.Arch), Hypervisor: in.it.Hypervisor,
		RootDevice: in.image.rootDevice, RootDeviceType: "ebs", Virtualization: "hvm", EBSOptimized: true, Monitoring: "disabled",
		Lifecycle: in.lifecycle(), SpotRequestID: in.requestID, Groups: s.groupItems(templateGroups(data)), Tags: tagItems(in.tags),
		StateReason: in.reason, Reservation: reservationSpec{Preference: orDefault(data["CapacityReservationSpecification.CapacityReservationPreference"], "open")},
	}
	if data["Monitoring.Enabled"] == "true" {
		item.Monitoring = "enabled"
	}
	if profile := s.profiles[data["IamInstanceProfile.Name"]]; profile != nil {
		item.Profile = &profileRef{ARN: profile.arn, ID: profile.id}
	}
	if in.reservation != nil {
		item.ReservationID, item.Reservation.TargetID = in.reservation.ID, in.reservation.ID
	}
	if in.group != nil {
		item.Placement.GroupID, item.Placement.GroupName, item.Placement.Partition = in.group.ID, in.group.Name, in.partition
	}
	item.Interfaces = s.interfaceItems(in, item.Groups, dns)
	return item
}

func (s *Server) interfaceItems(in *instance, groups []groupItem, dns string) []interfaceItem {
	first := interfaceItem{
		ID: in.interfaceID, Type: "interface", Status: "in-use", SubnetID: in.subnet.id, VPCID: s.vpc, OwnerID: s.opts.AccountID,
		PrivateIP: in.addr.String(), PrivateDNS: dns, Groups: groups, Attached: "attached",
	}
	items := []interfaceItem{first}
	for i, specification := range in.template.data.each("NetworkInterface") {
		kind := orDefault(specification["InterfaceType"], "interface")
		if i == 0 {
			items[0].Type = kind
			continue
		}
		extra := first
		extra.ID, extra.Type, extra.PrivateIP = first.ID[:len(first.ID)-2]+strconv.Itoa(10+i), kind, ""
		extra.DeviceIndex, extra.CardIndex = atoi(specification["DeviceIndex"]), atoi(specification["NetworkCardIndex"])
		items = append(items, extra)
	}
	return items
}

func (s *Server) groupItems(ids []string) []groupItem {
	if len(ids) == 0 {
		ids = []string{s.groups[1].id} // the default group of the VPC
	}
	var items []groupItem
	for _, id := range ids {
		if group := s.groupByID(id); group != nil {
			items = append(items, groupItem{ID: group.id, Name: group.name})
		}
	}
	return items
}

func orDefault(value, fallback string) string {
	if value == "" {
		return fallback
	}
	return value
}

func atoi(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return n
}
