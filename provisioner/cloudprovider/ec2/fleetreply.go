// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"k8s.io/klog/v2"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
)

// readFleet reads the answer and remembers what EC2 refused. Without any instance it is a failure: the token has its
// answer, and repeating it gives the same.
func (p *Provider) readFleet(ctx context.Context, f *fleet, out *ec2.CreateFleetOutput) (*cloudprovider.LaunchResult, *cloudprovider.LaunchError) {
	result := &cloudprovider.LaunchResult{}
	now := time.Now()
	for i := range out.Instances {
		result.Instances = append(result.Instances, f.instances(&out.Instances[i], now)...)
	}
	for i := range out.Errors {
		result.Failures = append(result.Failures, f.failure(&out.Errors[i]))
	}
	p.rememberFailures(ctx, f, out.Errors, now)
	if len(result.Instances) > 0 {
		return result, nil
	}
	return result, emptyFleet(result.Failures)
}

// place reads type, zone and subnet of one reply item; any part of the reply may be missing.
func (f *fleet) place(origin *ec2types.LaunchTemplateAndOverridesResponse) (instanceType, zone, subnetID string) {
	if origin == nil || origin.Overrides == nil {
		return "", "", ""
	}
	o := origin.Overrides
	instanceType, zone, subnetID = string(o.InstanceType), aws.ToString(o.AvailabilityZone), aws.ToString(o.SubnetId)
	if zone == "" {
		for _, s := range f.subnets {
			if s.id == subnetID {
				zone = s.zone
			}
		}
	}
	return instanceType, zone, subnetID
}

func (f *fleet) instances(item *ec2types.CreateFleetInstance, now time.Time) []cloudprovider.Instance {
	instanceType, zone, subnetID := f.place(item.LaunchTemplateAndOverrides)
	instanceType = cmp.Or(string(item.InstanceType), instanceType)
	zone = cmp.Or(zone, aws.ToString(item.AvailabilityZone))
	subnetID = cmp.Or(subnetID, aws.ToString(item.SubnetId), f.subnets[zone].id)
	var list []cloudprovider.Instance
	for _, id := range item.InstanceIds {
		list = append(list, cloudprovider.Instance{
			ID: id, ProviderID: providerID(zone, id), InstanceType: instanceType, Zone: zone, ZoneID: f.subnets[zone].zoneID,
			CapacityType: f.capacityType, ImageID: f.images[instanceType], SubnetID: subnetID, LaunchTime: now, Tags: f.tags,
			State: string(ec2types.InstanceStateNamePending),
		})
	}
	return list
}

func (f *fleet) failure(item *ec2types.CreateFleetError) cloudprovider.OfferingFailure {
	instanceType, zone, _ := f.place(item.LaunchTemplateAndOverrides)
	return cloudprovider.OfferingFailure{
		InstanceType: instanceType, Zone: zone, CapacityType: f.capacityType,
		Code: aws.ToString(item.ErrorCode), Message: withoutSecrets(aws.ToString(item.ErrorMessage)),
	}
}

// rememberFailures marks what each error says is used up: a pool, a quota, a subnet, or spot as a whole. What is wrong
// with the class or passes by itself is no pool's fault.
func (p *Provider) rememberFailures(ctx context.Context, f *fleet, failures []ec2types.CreateFleetError, now time.Time) {
	if len(failures) == 0 {
		return
	}
	logger := klog.FromContext(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unavailable.expire(now)
	for i := range failures {
		code, message := aws.ToString(failures[i].ErrorCode), aws.ToString(failures[i].ErrorMessage)
		instanceType, zone, subnetID := f.place(failures[i].LaunchTemplateAndOverrides)
		logger.V(2).Info("EC2 refused an offering", "instanceType", instanceType, "zone", zone, "capacityType", f.capacityType, "code", code)
		how, known := f.class.launchable[instanceType]
		switch kind := failureOf(code, message); {
		case code == spotRoleCode:
			p.unavailable.markCapacityType(now, spot)
		case code == freeAddressesCode && subnetID != "":
			p.unavailable.markSubnet(now, subnetID)
		case slices.Contains(quotaCodes, code) && known:
			p.unavailable.markQuota(now, quotaKey{how.hardware.quota, f.capacityType}, how.hardware.vcpus)
		case known && (kind == cloudprovider.InsufficientCapacity || kind == cloudprovider.Rejected):
			p.unavailable.markPool(now, pool{instanceType, zone, f.capacityType})
		}
	}
}

// emptyFleet says why a launch gave nothing. What is wrong with the class comes first: no other offering would help.
func emptyFleet(failures []cloudprovider.OfferingFailure) *cloudprovider.LaunchError {
	worst := &cloudprovider.LaunchError{Failure: cloudprovider.InsufficientCapacity, Failures: failures, Err: errors.New("EC2 gave no instance and no reason")}
	for i, of := range failures {
		kind := failureOf(of.Code, of.Message)
		if kind != cloudprovider.NodeClassNotReady && i > 0 {
			continue
		}
		worst.Code = of.Code
		worst.Err = fmt.Errorf("%s in %s: %s", of.InstanceType, of.Zone, of.Message)
		if kind == cloudprovider.NodeClassNotReady {
			worst.Failure = kind
			return worst
		}
	}
	return worst
}

// withoutSecrets cuts the encoded part off an authorization failure.
func withoutSecrets(message string) string {
	before, _, _ := strings.Cut(message, "Encoded authorization failure message")
	return strings.TrimSpace(before)
}

func providerID(zone, id string) string { return "aws:///" + zone + "/" + id }
