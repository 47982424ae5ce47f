// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
)

const instancesPage = 1000

// liveStates are all but terminated.
var liveStates = []string{
	string(ec2types.InstanceStateNamePending), string(ec2types.InstanceStateNameRunning), string(ec2types.InstanceStateNameShuttingDown),
	string(ec2types.InstanceStateNameStopping), string(ec2types.InstanceStateNameStopped),
}

// FindLaunched implements cloudprovider.Interface.
func (p *Provider) FindLaunched(ctx context.Context, group string) ([]cloudprovider.Instance, error) {
	return p.listInstances(ctx, filter("tag:"+LaunchGroupTag, group))
}

// List implements cloudprovider.Interface. It also sees what Karpenter has launched for this cluster.
func (p *Provider) List(ctx context.Context) ([]cloudprovider.Instance, error) {
	return p.listInstances(ctx, filter("tag-key", awsv1.NodePoolTagKey), filter("tag-key", awsv1.NodeClassTagKey))
}

func (p *Provider) listInstances(ctx context.Context, filters ...ec2types.Filter) ([]cloudprovider.Instance, error) {
	filters = append(filters, filter("tag:"+awsv1.EKSClusterNameTagKey, p.opts.ClusterName), filter("instance-state-name", liveStates...))
	pages := ec2.NewDescribeInstancesPaginator(p.ec2, &ec2.DescribeInstancesInput{Filters: filters, MaxResults: aws.Int32(instancesPage)})
	var list []cloudprovider.Instance
	for pages.HasMorePages() {
		page, err := nextPage(ctx, pages.NextPage)
		if err != nil {
			return nil, fmt.Errorf("describing instances: %w", err)
		}
		list = append(list, readInstances(page.Reservations)...)
	}
	return list, nil
}

// Get implements cloudprovider.Interface. EC2 may not know an instance for some seconds after its launch: that is
// ErrInstanceNotFound as well.
func (p *Provider) Get(ctx context.Context, id string) (*cloudprovider.Instance, error) {
	instanceID, err := parseProviderID(id)
	if err != nil {
		return nil, err
	}
	out, err := call(ctx, "describing instance "+instanceID, p.ec2.DescribeInstances, &ec2.DescribeInstancesInput{InstanceIds: []string{instanceID}})
	if hasCode(err, instanceNotFoundCodes) {
		return nil, cloudprovider.ErrInstanceNotFound
	}
	if err != nil {
		return nil, err
	}
	for _, instance := range readInstances(out.Reservations) {
		if instance.ID == instanceID && instance.State != string(ec2types.InstanceStateNameTerminated) {
			return &instance, nil
		}
	}
	return nil, cloudprovider.ErrInstanceNotFound
}

// Tag implements cloudprovider.Interface.
func (p *Provider) Tag(ctx context.Context, id string, tags map[string]string) error {
	instanceID, err := parseProviderID(id)
	if err != nil || len(tags) == 0 {
		return err
	}
	_, err = call(ctx, "tagging instance "+instanceID, p.ec2.CreateTags, &ec2.CreateTagsInput{Resources: []string{instanceID}, Tags: ec2Tags(tags)})
	if hasCode(err, instanceNotFoundCodes) {
		return cloudprovider.ErrInstanceNotFound
	}
	return err
}

// Terminate implements cloudprovider.Interface.
func (p *Provider) Terminate(ctx context.Context, id string) error {
	instanceID, err := parseProviderID(id)
	if err != nil {
		return err
	}
	out, err := call(ctx, "terminating instance "+instanceID, p.ec2.TerminateInstances, &ec2.TerminateInstancesInput{InstanceIds: []string{instanceID}})
	if hasCode(err, instanceNotFoundCodes) {
		return cloudprovider.ErrInstanceNotFound
	}
	if err != nil {
		return err
	}
	for _, change := range out.TerminatingInstances {
		if aws.ToString(change.InstanceId) == instanceID && change.PreviousState != nil && change.PreviousState.Name == ec2types.InstanceStateNameTerminated {
			return cloudprovider.ErrInstanceNotFound
		}
	}
	return nil
}

func readInstances(reservations []ec2types.Reservation) []cloudprovider.Instance {
	var list []cloudprovider.Instance
	for i := range reservations {
		for j := range reservations[i].Instances {
			list = append(list, readInstance(&reservations[i].Instances[j]))
		}
	}
	return list
}

func readInstance(of *ec2types.Instance) cloudprovider.Instance {
	instance := cloudprovider.Instance{
		ID: aws.ToString(of.InstanceId), InstanceType: string(of.InstanceType), CapacityType: onDemand, ImageID: aws.ToString(of.ImageId),
		SubnetID: aws.ToString(of.SubnetId), LaunchTime: aws.ToTime(of.LaunchTime), Tags: tagMap(of.Tags),
	}
	if of.SpotInstanceRequestId != nil || of.InstanceLifecycle == ec2types.InstanceLifecycleTypeSpot {
		instance.CapacityType = spot
	}
	if of.Placement != nil {
		instance.Zone, instance.ZoneID = aws.ToString(of.Placement.AvailabilityZone), aws.ToString(of.Placement.AvailabilityZoneId)
	}
	if of.State != nil {
		instance.State = string(of.State.Name)
	}
	instance.ProviderID = providerID(instance.Zone, instance.ID)
	return instance
}

// parseProviderID takes aws:///zone/instance-id apart.
func parseProviderID(id string) (instanceID string, err error) {
	rest, ok := strings.CutPrefix(id, "aws:///")
	_, instanceID, _ = strings.Cut(rest, "/")
	if !ok || !strings.HasPrefix(instanceID, "i-") || strings.Contains(instanceID, "/") {
		return "", fmt.Errorf("provider id %q is not aws:///zone/instance-id", id)
	}
	return instanceID, nil
}
