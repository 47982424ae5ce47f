// SPDX-License-Identifier: Apache-2.0

package witness

import (
	"context"
	"encoding/base64"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// call is one SDK call that both worlds answer. Calls run in their order: some use what earlier ones made.
type call struct {
	name string
	do   func(context.Context, *world) (any, error)
	// except are fields in which the fake is right to differ, by pattern, with the reason.
	except map[string]string
}

// instanceTypes are compared field by field: every kind that AWS has once.
var instanceTypes = []types.InstanceType{
	"c3.large", "c5.xlarge", "c5n.9xlarge", "c6in.32xlarge", "c7g.4xlarge", "g4ad.xlarge", "g4dn.xlarge", "g5.xlarge", "i3.large", "inf1.xlarge",
	"inf2.xlarge", "m5.large", "m5.metal", "m5d.large", "m6g.large", "m7i-flex.large", "p4d.24xlarge", "r5.2xlarge", "r8g.large", "t2.small",
	"t3.micro", "trn1.32xlarge", "x2idn.16xlarge",
}

const (
	template  = "witness"
	missingID = "i-00000000000000000"
)

func templateInput(w *world, name string) *ec2.CreateLaunchTemplateInput {
	return &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: &name,
		LaunchTemplateData: &types.RequestLaunchTemplateData{
			ImageId: &w.image, UserData: aws.String(base64.StdEncoding.EncodeToString([]byte("#!/bin/sh\n"))),
		},
		TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeLaunchTemplate, Tags: []types.Tag{tag("witness", "yes")}}},
	}
}

func tag(key, value string) types.Tag { return types.Tag{Key: &key, Value: &value} }

func fleetInput(w *world, name string) *ec2.CreateFleetInput {
	return &ec2.CreateFleetInput{
		Type: types.FleetTypeInstant,
		LaunchTemplateConfigs: []types.FleetLaunchTemplateConfigRequest{{
			LaunchTemplateSpecification: &types.FleetLaunchTemplateSpecificationRequest{LaunchTemplateName: &name, Version: aws.String("$Latest")},
			Overrides: []types.FleetLaunchTemplateOverridesRequest{{
				InstanceType: types.InstanceTypeM5Large, SubnetId: &w.subnet, AvailabilityZone: aws.String(zone), ImageId: &w.image,
			}},
		}},
		TargetCapacitySpecification: &types.TargetCapacitySpecificationRequest{
			TotalTargetCapacity: aws.Int32(1), DefaultTargetCapacityType: types.DefaultTargetCapacityTypeOnDemand,
		},
		OnDemandOptions:   &types.OnDemandOptionsRequest{AllocationStrategy: types.FleetOnDemandAllocationStrategyLowestPrice},
		TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeInstance, Tags: []types.Tag{tag("witness", "yes")}}},
	}
}

// ec2Calls are those of EC2: a machine's life, and what there is to launch from.
// ofInstances are exceptions of instances, however they are asked for.
var ofInstances = map[string]string{
	`.*\.CapacityReservationSpecification\..*`: "moto lacks it",
	`.*\.EbsOptimized`:                         "moto lacks it",
	`.*\.Hypervisor`:                           "moto says xen of all types",
	`.*\.AvailabilityZoneId`:                   "moto lacks it in placements",
	`.*\.RootDeviceName`:                       "moto says /dev/sda1 of all images",
	`.*\.SecurityGroups\[\]\..*`:               "moto applies no group when the template has none",
	`.*\.Tags\[aws:.*\]\..*`:                   "moto does not tag by fleet and template",
}

var ec2Calls = []call{
	{name: "DescribeInstanceTypes", except: map[string]string{
		`.*\[c3.large\]\.SupportedRootDeviceTypes`: "no type with an instance-store root is of use here",
	}, do: func(ctx context.Context, w *world) (any, error) {
		return w.ec2.DescribeInstanceTypes(ctx, &ec2.DescribeInstanceTypesInput{InstanceTypes: instanceTypes})
	}},
	{name: "DescribeInstanceTypes of none", do: func(ctx context.Context, w *world) (any, error) {
		return w.ec2.DescribeInstanceTypes(ctx, &ec2.DescribeInstanceTypesInput{InstanceTypes: []types.InstanceType{"m5.huge"}})
	}},
	{name: "DescribeInstanceTypeOfferings", do: func(ctx context.Context, w *world) (any, error) {
		return w.ec2.DescribeInstanceTypeOfferings(ctx, &ec2.DescribeInstanceTypeOfferingsInput{
			LocationType: types.LocationTypeAvailabilityZone, Filters: []types.Filter{filter("instance-type", "m5.large"), filter("location", "us-east-1a", "us-east-1b")},
		})
	}},
	{name: "DescribeSubnets", except: map[string]string{
		`.*\.AvailabilityZoneId`: "accounts map zones to ids as they like",
		`.*\.Tags\[.*\]\..*`:     "the subnets of moto have no tags",
	}, do: func(ctx context.Context, w *world) (any, error) {
		return w.ec2.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{SubnetIds: []string{w.subnet}})
	}},
	{name: "DescribeSubnets of none", do: func(ctx context.Context, w *world) (any, error) {
		return w.ec2.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{SubnetIds: []string{"subnet-0"}})
	}},
	{name: "DescribeSecurityGroups", do: func(ctx context.Context, w *world) (any, error) {
		return w.ec2.DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{Filters: []types.Filter{filter("group-name", "defau*")}})
	}},
	{name: "DescribeSecurityGroups of none", do: func(ctx context.Context, w *world) (any, error) {
		return w.ec2.DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{GroupIds: []string{"sg-00000000000000000"}})
	}},
	{name: "DescribeImages", except: map[string]string{
		`.*\.BlockDeviceMappings\[\]\..*`:   "other images",
		`.*\.(Name|OwnerId|RootDeviceName)`: "other images",
		`.*\.DeprecationTime`:               "moto lacks it",
		`.*\.EnaSupport`:                    "moto lacks it",
	}, do: func(ctx context.Context, w *world) (any, error) {
		return w.ec2.DescribeImages(ctx, &ec2.DescribeImagesInput{ImageIds: []string{w.image}})
	}},
	{name: "DescribeImages of none", do: func(ctx context.Context, w *world) (any, error) {
		return w.ec2.DescribeImages(ctx, &ec2.DescribeImagesInput{ImageIds: []string{"ami-00000000000000000"}})
	}},
	{name: "DescribeSpotPriceHistory", except: map[string]string{
		`.*\.SpotPrice`:          "moto has one price for everything",
		`.*\.ProductDescription`: "moto names one product, asked for or not",
		`.*\.AvailabilityZoneId`: "moto lacks it",
	}, do: func(ctx context.Context, w *world) (any, error) {
		return w.ec2.DescribeSpotPriceHistory(ctx, &ec2.DescribeSpotPriceHistoryInput{
			ProductDescriptions: []string{"Linux/UNIX"}, Filters: []types.Filter{filter("instance-type", "m5.large"), filter("availability-zone", zone)},
		})
	}},

	{name: "CreateLaunchTemplate", except: map[string]string{
		`.*\.CreatedBy`: "another caller",
	}, do: func(ctx context.Context, w *world) (any, error) {
		return w.ec2.CreateLaunchTemplate(ctx, templateInput(w, template))
	}},
	{name: "CreateLaunchTemplate again", do: func(ctx context.Context, w *world) (any, error) {
		return w.ec2.CreateLaunchTemplate(ctx, templateInput(w, template))
	}},
	{name: "DescribeLaunchTemplates by name", except: map[string]string{
		`.*\.CreatedBy`: "another caller",
	}, do: func(ctx context.Context, w *world) (any, error) {
		return w.ec2.DescribeLaunchTemplates(ctx, &ec2.DescribeLaunchTemplatesInput{LaunchTemplateNames: []string{template}})
	}},
	{name: "DescribeLaunchTemplates by tag", except: map[string]string{
		`.*\.CreatedBy`: "another caller",
	}, do: func(ctx context.Context, w *world) (any, error) {
		return w.ec2.DescribeLaunchTemplates(ctx, &ec2.DescribeLaunchTemplatesInput{Filters: []types.Filter{filter("tag:witness", "yes")}})
	}},
	{name: "DescribeLaunchTemplates of none", do: func(ctx context.Context, w *world) (any, error) {
		return w.ec2.DescribeLaunchTemplates(ctx, &ec2.DescribeLaunchTemplatesInput{LaunchTemplateNames: []string{"none"}})
	}},
	{name: "DescribeLaunchTemplates of no id", except: map[string]string{
		`error`: "moto finds nothing, EC2 has an error",
	}, do: func(ctx context.Context, w *world) (any, error) {
		return w.ec2.DescribeLaunchTemplates(ctx, &ec2.DescribeLaunchTemplatesInput{LaunchTemplateIds: []string{"lt-00000000000000000"}})
	}},
	{name: "RunInstances, dry", do: func(ctx context.Context, w *world) (any, error) {
		return w.ec2.RunInstances(ctx, &ec2.RunInstancesInput{
			DryRun: aws.Bool(true), MinCount: aws.Int32(1), MaxCount: aws.Int32(1), InstanceType: types.InstanceTypeM5Large, SubnetId: &w.subnet,
			LaunchTemplate: &types.LaunchTemplateSpecification{LaunchTemplateName: aws.String(template), Version: aws.String("$Latest")},
		})
	}},
	{name: "CreateFleet, dry", do: func(ctx context.Context, w *world) (any, error) {
		in := fleetInput(w, template)
		in.DryRun = aws.Bool(true)
		return w.ec2.CreateFleet(ctx, in)
	}},
	{name: "CreateFleet without template", do: func(ctx context.Context, w *world) (any, error) {
		return w.ec2.CreateFleet(ctx, fleetInput(w, "none"))
	}},
	{name: "CreateFleet", except: map[string]string{
		`Instances\[\]\.(AvailabilityZone|AvailabilityZoneId|SubnetId)`: "moto has them in the overrides only",
		`.*\.Overrides\.AvailabilityZoneId`:                             "moto lacks it",
	}, do: func(ctx context.Context, w *world) (any, error) {
		out, err := w.ec2.CreateFleet(ctx, fleetInput(w, template))
		if err == nil && len(out.Instances) > 0 {
			w.instance = out.Instances[0].InstanceIds[0]
			waiter := ec2.NewInstanceRunningWaiter(w.ec2, func(o *ec2.InstanceRunningWaiterOptions) { o.MinDelay, o.MaxDelay = 10*time.Millisecond, time.Second })
			err = waiter.Wait(ctx, &ec2.DescribeInstancesInput{InstanceIds: []string{w.instance}}, time.Minute)
		}
		return out, err
	}},
	{name: "DescribeInstances by id", except: ofInstances, do: func(ctx context.Context, w *world) (any, error) {
		return w.ec2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{InstanceIds: []string{w.instance}})
	}},
	{name: "DescribeInstances by tag and state", except: ofInstances, do: func(ctx context.Context, w *world) (any, error) {
		return w.ec2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{
			Filters: []types.Filter{filter("tag:witness", "*"), filter("instance-state-name", "pending", "running")}, MaxResults: aws.Int32(100),
		})
	}},
	{name: "DescribeInstances of none", do: func(ctx context.Context, w *world) (any, error) {
		return w.ec2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{InstanceIds: []string{missingID}})
	}},
	{name: "DescribeInstanceStatus", except: map[string]string{
		`.*\.AttachedEbsStatus\..*`: "moto lacks it", `.*\.AvailabilityZoneId`: "moto lacks it",
	}, do: func(ctx context.Context, w *world) (any, error) {
		return w.ec2.DescribeInstanceStatus(ctx, &ec2.DescribeInstanceStatusInput{InstanceIds: []string{w.instance}})
	}},
	{name: "CreateTags", do: func(ctx context.Context, w *world) (any, error) {
		return w.ec2.CreateTags(ctx, &ec2.CreateTagsInput{Resources: []string{w.instance}, Tags: []types.Tag{tag("Name", "one")}})
	}},
	{name: "DescribeInstances by new tag", except: ofInstances, do: func(ctx context.Context, w *world) (any, error) {
		return w.ec2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{Filters: []types.Filter{filter("tag-key", "Name")}})
	}},
	{name: "RebootInstances", do: func(ctx context.Context, w *world) (any, error) {
		return w.ec2.RebootInstances(ctx, &ec2.RebootInstancesInput{InstanceIds: []string{w.instance}})
	}},
	{name: "TerminateInstances", do: func(ctx context.Context, w *world) (any, error) {
		return w.ec2.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{w.instance}})
	}},
	{name: "TerminateInstances of none", do: func(ctx context.Context, w *world) (any, error) {
		return w.ec2.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{missingID}})
	}},
	{name: "DeleteLaunchTemplate", except: map[string]string{
		`.*\.(CreateTime|CreatedBy|LatestVersionNumber|DefaultVersionNumber)`: "moto tells id and name only",
		`.*\.Tags\[.*\]\..*`: "moto tells id and name only",
	}, do: func(ctx context.Context, w *world) (any, error) {
		return w.ec2.DeleteLaunchTemplate(ctx, &ec2.DeleteLaunchTemplateInput{LaunchTemplateName: aws.String(template)})
	}},
	{name: "DeleteLaunchTemplate again", except: map[string]string{
		`error`: "moto says MissingParameter, which EC2 does not",
	}, do: func(ctx context.Context, w *world) (any, error) {
		return w.ec2.DeleteLaunchTemplate(ctx, &ec2.DeleteLaunchTemplateInput{LaunchTemplateName: aws.String(template)})
	}},
}
