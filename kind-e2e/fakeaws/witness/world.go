// SPDX-License-Identifier: Apache-2.0

package witness

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	ssmtypes "github.com/aws/aws-sdk-go-v2/service/ssm/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/fakeaws"
)

const (
	ownParameter = "/witness/ami"
	roleName     = "node-role"
	queueName    = "witness"
	clusterName  = "demo"
	zone         = "us-east-1a"
)

// world is one implementation of AWS with what the calls need in it.
type world struct {
	ec2     *ec2.Client
	iam     *iam.Client
	ssm     *ssm.Client
	eks     *eks.Client
	sqs     *sqs.Client
	sts     *sts.Client
	pricing *pricing.Client

	subnet, group, image string
	instance             string // launched by a call
	queueURL, receipt    string
}

func newWorld(config aws.Config) *world {
	return &world{
		ec2: ec2.NewFromConfig(config), iam: iam.NewFromConfig(config), ssm: ssm.NewFromConfig(config), eks: eks.NewFromConfig(config),
		sqs: sqs.NewFromConfig(config), sts: sts.NewFromConfig(config), pricing: pricing.NewFromConfig(config),
	}
}

// find looks for a subnet, a group and an image that the calls can use.
func (w *world) find(ctx context.Context) error {
	subnets, err := w.ec2.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{Filters: []ec2types.Filter{filter("availability-zone", zone)}})
	if err != nil || len(subnets.Subnets) == 0 {
		return fmt.Errorf("no subnet in %s: %w", zone, err)
	}
	w.subnet = *subnets.Subnets[0].SubnetId
	groups, err := w.ec2.DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{Filters: []ec2types.Filter{filter("group-name", "default")}})
	if err != nil || len(groups.SecurityGroups) == 0 {
		return fmt.Errorf("no default security group: %w", err)
	}
	w.group = *groups.SecurityGroups[0].GroupId
	images, err := w.ec2.DescribeImages(ctx, &ec2.DescribeImagesInput{Owners: []string{"amazon"}, Filters: []ec2types.Filter{filter("architecture", "x86_64")}})
	if err != nil || len(images.Images) == 0 {
		return fmt.Errorf("no image: %w", err)
	}
	w.image = *images.Images[0].ImageId
	return nil
}

// furnishFake makes what the calls need in the fake, which its control interface does.
func furnishFake(ctx context.Context, s *fakeaws.Server) (*world, error) {
	w := newWorld(s.AWSConfig("AKWITNESS"))
	s.SetParameter(ownParameter, "ami-1")
	s.CreateQueue(queueName)
	return w, w.find(ctx)
}

// furnishMoto makes the same in moto, by AWS's own calls.
func furnishMoto(ctx context.Context, config aws.Config) (*world, error) {
	w := newWorld(config)
	if _, err := w.ssm.PutParameter(ctx, &ssm.PutParameterInput{Name: aws.String(ownParameter), Value: aws.String("ami-1"), Type: ssmtypes.ParameterTypeString}); err != nil {
		return nil, err
	}
	if _, err := w.sqs.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String(queueName)}); err != nil {
		return nil, err
	}
	if _, err := w.iam.CreateRole(ctx, &iam.CreateRoleInput{RoleName: aws.String(roleName), AssumeRolePolicyDocument: aws.String("{}")}); err != nil {
		return nil, err
	}
	if err := w.find(ctx); err != nil {
		return nil, err
	}
	_, err := w.eks.CreateCluster(ctx, &eks.CreateClusterInput{
		Name: aws.String(clusterName), RoleArn: aws.String("arn:aws:iam::123456789012:role/cluster"), Version: aws.String("1.37"),
		ResourcesVpcConfig: &ekstypes.VpcConfigRequest{SubnetIds: []string{w.subnet}},
	})
	return w, err
}

func filter(name string, values ...string) ec2types.Filter {
	return ec2types.Filter{Name: &name, Values: values}
}
