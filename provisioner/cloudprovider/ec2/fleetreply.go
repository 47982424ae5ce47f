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
	"github.com/aws/smithy-go"
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
	p.explainAddresses(f, result.Failures)
	if slices.ContainsFunc(result.Failures, func(of cloudprovider.OfferingFailure) bool { return slices.Contains(templateNotFoundCodes, of.Code) }) {
		p.missTemplates(f.templates) // the next launch creates them again
	}
	if len(result.Instances) > 0 {
		return result, nil
	}
	failure := emptyFleet(result.Failures)
	for i := range out.Errors {
		if code := aws.ToString(out.Errors[i].ErrorCode); code != "" && code == failure.Code {
			failure.Err = &said{failure.Err.Error(), &smithy.GenericAPIError{Code: code, Message: aws.ToString(out.Errors[i].ErrorMessage)}}
			break
		}
	}
	return result, failure
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
	code, message := aws.ToString(item.ErrorCode), withoutSecrets(aws.ToString(item.ErrorMessage))
	if code == spotRoleCode {
		message = spotRoleAdvice
	}
	return cloudprovider.OfferingFailure{
		InstanceType: instanceType, Zone: zone, CapacityType: f.capacityType,
		Code: code, Message: message, Passing: moodOf(code, message).passing(),
	}
}

const spotRoleAdvice = "spot needs the service-linked role AWSServiceRoleForEC2Spot: create it once (aws iam create-service-linked-role " +
	"--aws-service-name spot.amazonaws.com), or grant iam:CreateServiceLinkedRole"

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
		if !known {
			how.hardware = &hardware{name: instanceType}
		}
		m := moodOf(code, message)
		if m.meaning == meansRejected && known {
			m.scope, m.ttl = scopePool, capacityFor // EC2 refuses this pool, whatever for: others may do
		}
		p.unavailable.remember(now, m, how.hardware, zone, f.capacityType, subnetID, f.reservation, code)
	}
}

// rememberRefusal marks what the refusal of a whole call rules out.
func (p *Provider) rememberRefusal(f *fleet, err error) {
	code, message := "", ""
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		code, message = api.ErrorCode(), api.ErrorMessage()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unavailable.remember(time.Now(), moodOf(code, message), &hardware{}, "", f.capacityType, "", f.reservation, code)
}

// emptyFleet says why a launch gave nothing. What is wrong with the class comes first: no other offering would help.
// If nothing was wrong but the moment, the same may be tried later.
func emptyFleet(failures []cloudprovider.OfferingFailure) *cloudprovider.LaunchError {
	worst := &cloudprovider.LaunchError{
		Failure: cloudprovider.InsufficientCapacity, Reason: reasonCapacity, Failures: failures, Spent: true, Err: errors.New("EC2 gave no instance and no reason"),
	}
	passing := len(failures) > 0
	for i := range failures {
		of := &failures[i]
		m := moodOf(of.Code, of.Message)
		passing = passing && of.Passing && of.Code != freeAddressesCode // another subnet is there at once
		kind := m.failure()
		if kind != cloudprovider.NodeClassNotReady && worst.Code != "" && (of.Passing || !moodOf(worst.Code, "").passing()) {
			continue
		}
		worst.Code, worst.Reason = of.Code, m.reason
		worst.Err = fmt.Errorf("%s: %s in %s: %s", of.Code, of.InstanceType, of.Zone, of.Message)
		if kind == cloudprovider.NodeClassNotReady {
			worst.Failure = kind
			return worst
		}
	}
	if passing {
		worst.Failure = cloudprovider.Throttled
	}
	return worst
}

// withoutSecrets cuts the encoded part off an authorization failure.
func withoutSecrets(message string) string {
	before, _, _ := strings.Cut(message, encodedMark)
	return strings.TrimSpace(before)
}

func providerID(zone, id string) string { return "aws:///" + zone + "/" + id }
