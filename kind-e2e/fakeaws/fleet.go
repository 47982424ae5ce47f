// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/fakeaws/catalogue"
)

const (
	onDemand = "on-demand"
	spot     = "spot"

	maxTemplatesPerFleet = 50
	maxOverridesPerFleet = 300
	tokenLife            = 48 * time.Hour
)

// fleet is a validated CreateFleet request of type instant.
type fleet struct {
	id           string
	token        string
	target       int
	targetType   string // of the request
	capacityType string // spot or on-demand, which reserved capacity counts as
	strategy     string
	tags         map[string]string // of the instances
	params       map[string]string // of the request
	pools        []*pool
}

// pool is one override: a place where capacity may be found.
type pool struct {
	template *launchTemplate
	override form
	it       catalogue.Type
	subnet   *subnet
	image    *image
	priority float64
	err      *apiError // why nothing can be launched here, whatever the capacity
}

func createFleet(s *Server, r *request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	token, dryRun := r.form.get("ClientToken"), r.form.bool("DryRun")
	if before, ok := s.fleetTokens[token]; ok && token != "" && !dryRun && time.Since(before.reply.created) < tokenLife {
		if before.params != r.form.fingerprint() {
			return nil, errTokenMismatch(token)
		}
		r.refusals = before.reply.poolErrors()
		return before.reply, nil
	}
	s.deleteTemplates(r)
	f, err := s.validateFleet(r.form)
	if err != nil {
		return nil, err
	}
	if dryRun {
		return nil, errDryRun()
	}
	reply := s.fulfil(f, r.accessKey)
	r.refusals = reply.poolErrors()
	if token != "" {
		s.fleetTokens[token] = tokenReply[*createFleetReply]{params: r.form.fingerprint(), reply: reply}
	}
	return reply, nil
}

func (s *Server) validateFleet(request form) (*fleet, error) {
	if kind := request.get("Type"); kind != "instant" {
		return nil, errorf("InvalidParameterValue", "Fleet type '%s' is not supported by this endpoint, only instant is", kind)
	}
	f := &fleet{token: request.get("ClientToken"), tags: request.tagsFor("instance"), params: request}
	f.targetType = request.get("TargetCapacitySpecification.DefaultTargetCapacityType")
	f.capacityType = f.targetType
	if reservedTypes[f.targetType] != "" {
		f.capacityType = onDemand
	}
	switch f.capacityType {
	case onDemand:
		f.strategy = request.get("OnDemandOptions.AllocationStrategy")
	case spot:
		f.strategy = request.get("SpotOptions.AllocationStrategy")
	default:
		return nil, errorf("InvalidParameterValue", "Default target capacity type '%s' is not supported by this endpoint", f.capacityType)
	}
	if !slices.Contains(strategies[f.capacityType], f.strategy) {
		return nil, errorf("InvalidParameterValue", "Allocation strategy '%s' is not valid for %s capacity", f.strategy, f.capacityType)
	}
	var err error
	if f.target, err = strconv.Atoi(request.get("TargetCapacitySpecification.TotalTargetCapacity")); err != nil || f.target < 1 {
		return nil, errorf("InvalidParameterValue", "TotalTargetCapacity must be a positive number")
	}
	if err := checkTagSpecifications(request, "instance", "volume", "fleet", "network-interface", "spot-instances-request"); err != nil {
		return nil, err
	}
	return f, s.validatePools(f, request.each("LaunchTemplateConfigs"))
}

var strategies = map[string][]string{
	onDemand: {"", "lowest-price", "prioritized"},
	spot:     {"", "lowest-price", "price-capacity-optimized", "capacity-optimized", "capacity-optimized-prioritized"},
}

const (
	maxTags = 50
)

func checkTagSpecifications(request form, kinds ...string) error {
	for _, specification := range request.each("TagSpecification") {
		if kind := specification["ResourceType"]; !slices.Contains(kinds, kind) {
			return errorf("InvalidParameterValue", "'%s' is not a valid taggable resource type for this operation.", kind)
		}
		if len(specification.tags()) > maxTags {
			return errorf("TagLimitExceeded", "The maximum number of tags per resource is %d.", maxTags)
		}
	}
	return nil
}

func (s *Server) validatePools(f *fleet, configs []form) error {
	if len(configs) == 0 || len(configs) > maxTemplatesPerFleet {
		return errorf("InvalidFleetConfig", "A fleet takes 1 to %d launch template configurations, got %d", maxTemplatesPerFleet, len(configs))
	}
	for _, config := range configs {
		specification := config.under("LaunchTemplateSpecification")
		template, err := s.visibleTemplate(specification["LaunchTemplateId"], specification["LaunchTemplateName"])
		if err != nil {
			return err
		}
		if version := specification["Version"]; version != "$Latest" && version != "$Default" && version != "1" {
			return errorf("InvalidLaunchTemplateId.VersionNotFound", "Could not find launch template version %s", version)
		}
		for _, override := range config.each("Overrides") {
			f.pools = append(f.pools, s.newPool(template, override))
		}
	}
	if len(f.pools) == 0 || len(f.pools) > maxOverridesPerFleet {
		return errorf("InvalidFleetConfig", "A fleet takes 1 to %d overrides, got %d", maxOverridesPerFleet, len(f.pools))
	}
	return nil
}

// newPool resolves an override. What is wrong with it shows when the pool is tried.
func (s *Server) newPool(template *launchTemplate, override form) *pool {
	p := &pool{template: template, override: override, priority: math.Inf(1)}
	if n, err := strconv.ParseFloat(override["Priority"], 64); err == nil {
		p.priority = n
	}
	var known bool
	if p.it, known = catalogue.Get(override["InstanceType"]); !known || slices.Contains(s.settings.HiddenTypes, p.it.Name) {
		p.err = errorf("InvalidParameterValue", "The instance type '%s' is not valid", override["InstanceType"])
		return p
	}
	p.err = s.resolvePlace(p)
	if p.err == nil {
		p.err = s.resolveTemplate(p)
	}
	return p
}

func (s *Server) resolvePlace(p *pool) *apiError {
	zone := p.override["AvailabilityZone"]
	id := p.override["SubnetId"]
	if id == "" { // without a subnet EC2 takes the default one of the zone
		for _, sn := range s.subnets {
			if sn.zone == zone {
				id = sn.id
				break
			}
		}
	}
	p.subnet = s.subnetByID(id)
	switch {
	case p.subnet == nil:
		return errorf("InvalidSubnetID.NotFound", "The subnet ID '%s' does not exist", id)
	case zone != "" && zone != p.subnet.zone:
		return errorf("InvalidParameterValue", "The subnet '%s' is not in availability zone %s", id, zone)
	case !s.settings.offers(p.it.Name, p.subnet.zone):
		return errorf("Unsupported", "Your requested instance type (%s) is not supported in your requested Availability Zone (%s).", p.it.Name, p.subnet.zone)
	}
	return nil
}

func (s *Server) resolveTemplate(p *pool) *apiError {
	data := p.template.data
	imageID := p.override["ImageId"]
	if imageID == "" {
		imageID = data["ImageId"]
	}
	found := s.imageByID(imageID)
	if found == nil {
		return errorf("InvalidAMIID.NotFound", "The image id '[%s]' does not exist", imageID)
	}
	booted := *found // the image may change later, what was booted does not
	p.image = &booted
	if state := orDefault(p.image.state, "available"); state != "available" {
		return errorf("InvalidAMIID.Unavailable", "The image ID '[%s]' is not available", imageID)
	}
	if want := ec2Arch(p.it.Arch); p.image.arch != want {
		return errorf("InvalidParameterValue", "The architecture '%s' of the specified instance type does not match the architecture '%s' of the specified AMI.", want, p.image.arch)
	}
	for _, id := range templateGroups(data) {
		if s.groupByID(id) == nil {
			return errorf("InvalidGroup.NotFound", "The security group '%s' does not exist", id)
		}
	}
	if name := data["IamInstanceProfile.Name"]; name != "" && !s.profileVisible(name) {
		return errorf("InvalidParameterValue", "Value (%s) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name", name)
	}
	return nil
}

func ec2Arch(arch string) string {
	if arch == "amd64" {
		return "x86_64"
	}
	return arch
}

func templateGroups(data form) []string {
	if interfaces := data.each("NetworkInterface"); len(interfaces) > 0 {
		return interfaces[0].list("SecurityGroupId")
	}
	return data.list("SecurityGroupId")
}

// order sorts the pools as the allocation strategy tries them. Equal pools keep the request's order.
func (f *fleet) order() {
	price := func(p *pool) float64 {
		if f.capacityType == spot && p.subnet != nil {
			return p.it.SpotUSD(p.subnet.zone)
		}
		return p.it.OnDemandUSD
	}
	depth := func(p *pool) float64 {
		if p.subnet == nil {
			return 0
		}
		return p.it.SpotDepth(p.subnet.zone)
	}
	var key func(p *pool) (first, second float64)
	switch f.strategy {
	case "prioritized":
		key = func(p *pool) (float64, float64) { return p.priority, price(p) }
	case "price-capacity-optimized": // shallow pools last, then the price
		key = func(p *pool) (float64, float64) { return shallow(depth(p)), price(p) }
	case "capacity-optimized":
		key = func(p *pool) (float64, float64) { return -depth(p), price(p) }
	case "capacity-optimized-prioritized":
		key = func(p *pool) (float64, float64) { return shallow(depth(p)), p.priority }
	default:
		key = func(p *pool) (float64, float64) { return price(p), 0 }
	}
	slices.SortStableFunc(f.pools, func(a, b *pool) int {
		a1, a2 := key(a)
		b1, b2 := key(b)
		if order := compareFloat(a1, b1); order != 0 {
			return order
		}
		return compareFloat(a2, b2)
	})
}

const shallowDepth = 0.1

func shallow(depth float64) float64 {
	if depth < shallowDepth {
		return 1
	}
	return 0
}

func compareFloat(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
