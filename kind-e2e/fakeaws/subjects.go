// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// subject is what rules are matched against.
type subject struct {
	service, action, accessKey       string
	instanceTypes, zones, capacities []string
	subnets, reservations, instances []string
	tags                             []map[string]string // of each resource
	params                           map[string]string
	perPool                          bool
}

// concerns reports whether the rule's matcher fields all match.
func (r *Rule) concerns(of subject) bool {
	in := func(want string, have []string) bool { return want == "" || slices.Contains(have, want) }
	if !in(r.Service, []string{of.service}) || !in(r.Action, []string{of.action}) || !in(r.AccessKey, []string{of.accessKey}) || !allMatch(r.Params, of.params) {
		return false
	}
	if r.OmitInstances { // the rest is about each instance of the reply
		return true
	}
	return in(r.InstanceType, of.instanceTypes) && in(r.Zone, of.zones) && in(r.CapacityType, of.capacities) &&
		in(r.SubnetID, of.subnets) && in(r.ReservationID, of.reservations) && in(r.InstanceID, of.instances) &&
		(len(r.Tags) == 0 || slices.ContainsFunc(of.tags, func(tags map[string]string) bool { return allMatch(r.Tags, tags) }))
}

// allMatch reports whether every wanted key is there with a value that its pattern matches.
func allMatch(want, have map[string]string) bool {
	for key, pattern := range want {
		if value, ok := have[key]; !ok || !wildcard(pattern).MatchString(value) {
			return false
		}
	}
	return true
}

// wildcard compiles a pattern in which * is any text and ? any character.
func wildcard(pattern string) *regexp.Regexp {
	quoted := strings.ReplaceAll(strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*"), `\?`, ".")
	return regexp.MustCompile("^(?s:" + quoted + ")$")
}

// subjectOf names what a call speaks of.
func (s *Server) subjectOf(r *request) subject {
	of := subject{service: r.service, action: r.action, accessKey: r.accessKey, params: r.params}
	if r.service != "ec2" {
		return of
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	of.addPool(s, r.form)
	for _, config := range r.form.each("LaunchTemplateConfigs") {
		for _, override := range config.each("Overrides") {
			of.addPool(s, override)
		}
	}
	if capacity := r.form.get("TargetCapacitySpecification.DefaultTargetCapacityType"); capacity != "" {
		of.capacities = []string{capacity}
	}
	of.reservations = r.form.list("CapacityReservationId")
	of.addTags(r.form)
	for _, id := range slices.Concat(r.form.list("InstanceId"), r.form.list("ResourceId")) {
		of.instances = append(of.instances, id)
		if in := s.instances[id]; in != nil {
			of.addInstance(in)
		}
	}
	id := r.form.get("LaunchTemplateId")
	if template := s.templateByName(r.form.get("LaunchTemplateName")); template != nil && id == "" {
		id = template.ID
	}
	if template := s.templates[id]; template != nil {
		of.tags = append(of.tags, template.Tags)
	}
	return of
}

func (of *subject) addPool(s *Server, pool form) {
	zone, id := pool.get("AvailabilityZone"), pool.get("SubnetId")
	if sn := s.subnetByID(id); sn != nil {
		zone = sn.zone
	}
	of.instanceTypes = append(of.instanceTypes, pool.get("InstanceType"))
	of.zones, of.subnets = append(of.zones, zone), append(of.subnets, id)
}

// addTags adds the tags that a call sets on each kind of resource, or filters by.
func (of *subject) addTags(f form) {
	byKind, wanted := map[string]map[string]string{}, map[string]string{}
	for _, specification := range slices.Concat(f.each("TagSpecification"), f.each("LaunchTemplateData.TagSpecification")) {
		kind := specification["ResourceType"]
		if byKind[kind] == nil {
			byKind[kind] = map[string]string{}
		}
		maps.Copy(byKind[kind], specification.tags())
	}
	for _, filter := range f.each("Filter") {
		if key, ok := strings.CutPrefix(filter["Name"], "tag:"); ok {
			wanted[key] = filter["Value.1"]
		}
	}
	of.tags = slices.AppendSeq(of.tags, maps.Values(byKind))
	of.tags = append(of.tags, f.tags(), wanted)
}

func (of *subject) addInstance(in *instance) {
	of.instanceTypes, of.zones = append(of.instanceTypes, in.it.Name), append(of.zones, in.subnet.zone)
	of.capacities, of.subnets = append(of.capacities, in.capacityType), append(of.subnets, in.subnet.id)
	of.tags = append(of.tags, maps.Clone(in.tags))
	if in.reservation != nil {
		of.reservations = append(of.reservations, in.reservation.ID)
	}
}

// nodeSubject is what a machine does; the caller holds the lock.
func (in *instance) nodeSubject(action string) subject {
	of := subject{service: "node", action: action, instances: []string{in.id}}
	of.addInstance(in)
	return of
}

// poolSubject is one pool of a CreateFleet.
func (f *fleet) poolSubject(p *pool, accessKey string) subject {
	of := subject{
		service: "ec2", action: "CreateFleet", accessKey: accessKey, perPool: true, params: f.params, tags: []map[string]string{f.tags},
		instanceTypes: []string{p.it.Name}, zones: []string{p.subnet.zone}, subnets: []string{p.subnet.id}, capacities: []string{f.capacityType},
	}
	if id := p.template.targetReservation(); id != "" {
		of.reservations = []string{id}
	}
	return of
}

// defaultMessages are what EC2 says with the codes that have a message of their own.
var defaultMessages = map[string]string{
	"RequestLimitExceeded": "Request limit exceeded.",
	"UnauthorizedOperation": "You are not authorized to perform this operation. User: arn:aws:iam::111122223333:user/fake is not authorized to perform: " +
		"%s:%s because no identity-based policy allows the %[1]s:%[2]s action. Encoded authorization failure message: %[3]s",
	"AccessDenied":                                      "User: arn:aws:iam::111122223333:user/fake is not authorized to perform: %s:%s because no identity-based policy allows the %[1]s:%[2]s action",
	"InsufficientInstanceCapacity":                      "We currently do not have sufficient capacity in the Availability Zone you requested.",
	"UnfulfillableCapacity":                             "Unable to fulfill capacity due to your request configuration.",
	"MaxSpotInstanceCountExceeded":                      "Max spot instance count exceeded",
	"VcpuLimitExceeded":                                 "You have requested more vCPU capacity than your current vCPU limit allows.",
	"MaxFleetCountExceeded":                             "You have reached the maximum number of fleets.",
	"InsufficientFreeAddressesInSubnet":                 "There are not enough free addresses in the subnet to satisfy the requested number of instances.",
	"Unsupported":                                       "Your requested instance type is not supported in your requested Availability Zone.",
	"ReservationCapacityExceeded":                       "The capacity reservation has no available capacity.",
	"InvalidCapacityReservationState.Unavailable":       "The capacity reservation is not active.",
	"AuthFailure.ServiceLinkedRoleCreationNotPermitted": "The provided credentials do not have permission to create the service-linked role for EC2 Spot Instances.",
	"OperationNotPermitted":                             "The instance may not be terminated. Modify its 'disableApiTermination' instance attribute and try again.",
}

func defaultMessage(rule *Rule) string {
	text, ok := defaultMessages[rule.Code]
	switch {
	case !ok:
		return "injected by fault " + rule.ID
	case strings.Contains(text, "%s"):
		service := rule.Service
		if service == "" {
			service = "ec2"
		}
		if rule.Code == "UnauthorizedOperation" {
			return fmt.Sprintf(text, service, rule.Action, encodedFailure(service, rule.Action))
		}
		return fmt.Sprintf(text, service, rule.Action)
	}
	return text
}
