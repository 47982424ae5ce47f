// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"context"
	"fmt"
	"maps"
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
// ErrInstanceNotFound as well. Questions that come together are one call.
func (p *Provider) Get(ctx context.Context, id string) (*cloudprovider.Instance, error) {
	instanceID, err := parseProviderID(id)
	if err != nil {
		return nil, err
	}
	instance, err := p.describing.ask(ctx, instanceID)
	if err != nil {
		return nil, err
	}
	if instance.State == string(ec2types.InstanceStateNameTerminated) {
		return nil, cloudprovider.ErrInstanceNotFound
	}
	return &instance, nil
}

// describeInstances answers by id for those that EC2 has.
func (p *Provider) describeInstances(ctx context.Context, ids []string) (map[string]cloudprovider.Instance, error) {
	out, err := call(ctx, "describing instances", p.ec2.DescribeInstances, &ec2.DescribeInstancesInput{InstanceIds: ids})
	if err != nil {
		return nil, err
	}
	found := map[string]cloudprovider.Instance{}
	for _, instance := range readInstances(out.Reservations) {
		found[instance.ID] = instance
	}
	return found, nil
}

// Tag implements cloudprovider.Interface.
func (p *Provider) Tag(ctx context.Context, id string, tags map[string]string) error {
	instance, err := p.Get(ctx, id)
	if err != nil {
		return err
	}
	lacking := maps.Clone(tags)
	maps.DeleteFunc(lacking, func(key, _ string) bool { _, has := instance.Tags[key]; return has })
	if len(lacking) == 0 {
		return nil
	}
	_, err = call(ctx, "tagging instance "+instance.ID, p.ec2.CreateTags, &ec2.CreateTagsInput{Resources: []string{instance.ID}, Tags: ec2Tags(lacking)})
	return notFound(err)
}

// Terminate implements cloudprovider.Interface. Those that come together are one call.
func (p *Provider) Terminate(ctx context.Context, id string) error {
	instanceID, err := parseProviderID(id)
	if err != nil {
		return err
	}
	before, err := p.terminating.ask(ctx, instanceID)
	if err == nil && before == ec2types.InstanceStateNameTerminated {
		return cloudprovider.ErrInstanceNotFound
	}
	return err
}

// terminateInstances answers with the state that each had before, for those that end now.
func (p *Provider) terminateInstances(ctx context.Context, ids []string) (map[string]ec2types.InstanceStateName, error) {
	out, err := call(ctx, "terminating instances", p.ec2.TerminateInstances, &ec2.TerminateInstancesInput{InstanceIds: ids})
	if err != nil {
		return nil, err
	}
	before := map[string]ec2types.InstanceStateName{}
	for _, change := range out.TerminatingInstances {
		if change.CurrentState == nil || change.PreviousState == nil {
			continue
		}
		switch change.CurrentState.Name {
		case ec2types.InstanceStateNameShuttingDown, ec2types.InstanceStateNameTerminated:
			before[aws.ToString(change.InstanceId)] = change.PreviousState.Name
		case ec2types.InstanceStateNamePending, ec2types.InstanceStateNameRunning, ec2types.InstanceStateNameStopping, ec2types.InstanceStateNameStopped:
		}
	}
	if len(ids) == 1 && len(before) == 0 {
		return nil, fmt.Errorf("terminating instance %s: EC2 did not end it", ids[0])
	}
	return before, nil
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
