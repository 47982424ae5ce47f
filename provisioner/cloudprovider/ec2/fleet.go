// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
)

const (
	// EC2's limits of one request.
	maxOverrides = 300
	maxConfigs   = 50
	// maxTypes is Karpenter's limit.
	maxTypes = 60

	// choiceMemory is how long the choice of a token is remembered.
	choiceMemory = 30 * time.Minute
)

// choice is what a token was launched with besides its request, so that a replay is the very same.
type choice struct {
	class    *class
	subnets  map[string]subnet // by zone
	options  []cloudprovider.LaunchOption
	at       time.Time
	firstTry int // see fleet
}

// fleet is a launch as EC2 takes it. It is not changed after it was built.
type fleet struct {
	class        *class
	count        int
	capacityType string
	reservation  string // id, of a launch into one
	options      []cloudprovider.LaunchOption
	templates    []*templateSpec
	configs      []ec2types.FleetLaunchTemplateConfigRequest
	tags         map[string]string
	images       map[string]string // by instance type
	subnets      map[string]subnet // by zone
	pods         int64             // addresses that the machines' pods will take
	firstTry     int               // number of the CreateFleet that this is first sent with
}

// fleetFor builds the request, with the class and the subnets that the token had before, if it had. Equal requests make
// equal fleets as long as those are the same.
func (p *Provider) fleetFor(req *cloudprovider.LaunchRequest) (*fleet, *cloudprovider.LaunchError) {
	p.mu.Lock()
	made := p.choices[req.Token]
	c := p.resolved(req.NodeClass)
	var rooms map[string]room
	chosen := *req
	var failure *cloudprovider.LaunchError
	switch {
	case made != nil:
		chosen.Options = made.options
	case c != nil:
		p.unavailable.expire(time.Now())
		rooms = p.roomsOf(c)
		chosen.Options, failure = pick(c, p.unavailable, rooms, req.Options, req.MinValues)
	}
	p.mu.Unlock()
	if made != nil {
		again, wrong := p.newFleet(made.class, &chosen, made.subnets, nil)
		if wrong == nil {
			again.firstTry = made.firstTry
		}
		return again, wrong
	}
	if c == nil {
		return nil, &cloudprovider.LaunchError{Failure: cloudprovider.NodeClassNotReady, Reason: reasonLaunchFailed, Untried: true, Err: cloudprovider.ErrNotReady}
	}
	if failure != nil {
		return nil, failure
	}
	f, failure := p.newFleet(c, &chosen, nil, rooms)
	if failure != nil {
		return nil, failure
	}
	p.choose(req.Token, f)
	return f, nil
}

// choose remembers what the token was launched with and counts the addresses that it may take.
func (p *Provider) choose(token string, f *fleet) {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.choices, func(_ string, made *choice) bool { return now.Sub(made.at) > choiceMemory })
	p.choices[token] = &choice{class: f.class, subnets: f.subnets, options: f.options, at: now}
	p.debit(token, f, now)
}

func (p *Provider) newFleet(c *class, req *cloudprovider.LaunchRequest, subnets map[string]subnet, rooms map[string]room) (*fleet, *cloudprovider.LaunchError) {
	if req.Token == "" || req.Count < 1 || req.Count > math.MaxInt32 || len(req.Claims) != req.Count {
		err := fmt.Errorf("launch of %d machines for %d claims, token %q", req.Count, len(req.Claims), req.Token)
		return nil, &cloudprovider.LaunchError{Failure: cloudprovider.Rejected, Reason: reasonLaunchFailed, Untried: true, Err: err}
	}
	f := &fleet{class: c, count: req.Count, options: req.Options, images: map[string]string{}, subnets: map[string]subnet{}}
	maps.Copy(f.subnets, subnets)
	f.capacityType = capacityTypeOf(req.Options)
	if subnets == nil {
		f.choosePlaces(req.Options, rooms, len(req.MinValues) == 0)
	}
	groups := f.group(req.Options, wantsEFA(req))
	if len(groups) == 0 {
		return nil, nothingLeft("the class can launch none of the options")
	}
	for _, group := range groups {
		template, err := p.templateSpecOf(c, req, f.capacityType, group)
		if err != nil {
			return nil, &cloudprovider.LaunchError{Failure: cloudprovider.NodeClassNotReady, Reason: reasonLaunchFailed, Untried: true, Err: err}
		}
		f.templates = append(f.templates, template)
		f.configs = append(f.configs, ec2types.FleetLaunchTemplateConfigRequest{
			LaunchTemplateSpecification: &ec2types.FleetLaunchTemplateSpecificationRequest{LaunchTemplateName: aws.String(template.name), Version: aws.String("$Latest")},
			Overrides:                   group.overrides,
		})
	}
	f.tags = p.launchTags(c.object, req)
	return f, nil
}

func (p *Provider) launchTags(class *awsv1.EC2NodeClass, req *cloudprovider.LaunchRequest) map[string]string {
	tags := maps.Clone(req.Tags)
	if tags == nil {
		tags = map[string]string{}
	}
	maps.Copy(tags, p.commonTags(class, req.NodePool))
	tags[LaunchGroupTag] = req.Group
	return tags
}

// templateGroup are the overrides that share a launch template.
type templateGroup struct {
	imageID   string
	maxPods   int64
	efa       int64 // interfaces
	overrides []ec2types.FleetLaunchTemplateOverridesRequest
}

// group turns the options into overrides, by template, in the order of the options. Options that the class cannot
// launch, of the other capacity type, or beyond EC2's limits are left out.
func (f *fleet) group(options []cloudprovider.LaunchOption, efa bool) []*templateGroup {
	var groups []*templateGroup
	types := map[string]bool{}
	seen := map[pool]bool{}
	for _, option := range options {
		name, offering := option.InstanceType.Name, option.Offering
		how, ok := f.class.launchable[name]
		key := pool{name, offering.Zone, offering.CapacityType}
		if !ok || offering.CapacityType != f.capacityType || seen[key] || len(seen) == maxOverrides || (!types[name] && len(types) == maxTypes) {
			continue
		}
		place, ok := f.subnets[offering.Zone]
		if !ok {
			continue
		}
		like := templateGroup{imageID: how.image.ID, maxPods: how.maxPods}
		if efa {
			like.efa = how.hardware.devices[awsv1.ResourceEFA]
		}
		i := slices.IndexFunc(groups, func(g *templateGroup) bool {
			return g.imageID == like.imageID && g.maxPods == like.maxPods && g.efa == like.efa
		})
		if i < 0 {
			if len(groups) == maxConfigs {
				continue
			}
			i = len(groups)
			groups = append(groups, &like)
		}
		override := ec2types.FleetLaunchTemplateOverridesRequest{
			InstanceType: ec2types.InstanceType(name), SubnetId: aws.String(place.id), AvailabilityZone: aws.String(offering.Zone),
		}
		if f.capacityType != spot { // EC2 has its own idea of spot: price and depth
			override.Priority = aws.Float64(offering.Price)
		}
		groups[i].overrides = append(groups[i].overrides, override)
		types[name], seen[key] = true, true
		f.images[name] = how.image.ID
	}
	return groups
}

// input is a request of its own for every call: the SDK writes into what it is given.
func (f *fleet) input(token string) *ec2.CreateFleetInput {
	configs := make([]ec2types.FleetLaunchTemplateConfigRequest, len(f.configs))
	for i, config := range f.configs {
		specification := *config.LaunchTemplateSpecification
		configs[i] = ec2types.FleetLaunchTemplateConfigRequest{LaunchTemplateSpecification: &specification, Overrides: slices.Clone(config.Overrides)}
	}
	input := &ec2.CreateFleetInput{
		Type: ec2types.FleetTypeInstant, ClientToken: &token, LaunchTemplateConfigs: configs, Context: f.class.object.Spec.Context,
		TargetCapacitySpecification: &ec2types.TargetCapacitySpecificationRequest{
			TotalTargetCapacity: aws.Int32(int32(f.count)), DefaultTargetCapacityType: ec2types.DefaultTargetCapacityType(f.capacityType),
		},
	}
	for _, kind := range []ec2types.ResourceType{ec2types.ResourceTypeInstance, ec2types.ResourceTypeVolume, ec2types.ResourceTypeFleet} {
		input.TagSpecifications = append(input.TagSpecifications, ec2types.TagSpecification{ResourceType: kind, Tags: ec2Tags(f.tags)})
	}
	if f.capacityType == spot {
		input.SpotOptions = &ec2types.SpotOptionsRequest{AllocationStrategy: ec2types.SpotAllocationStrategyPriceCapacityOptimized}
	} else { // by priority, which is our price: it knows of discounts that EC2's list does not
		input.OnDemandOptions = &ec2types.OnDemandOptionsRequest{AllocationStrategy: ec2types.FleetOnDemandAllocationStrategyPrioritized}
	}
	return input
}
