// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"context"
	"encoding/base64"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const nodeUserData = `MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="//"

--//
Content-Type: application/node.eks.aws

apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster:
    apiServerEndpoint: https://api.demo
    certificateAuthority: Y2EtYnVuZGxl
    cidr: 10.96.0.0/16
    name: demo
  kubelet:
    config:
      maxPods: 58
      registerWithTaints:
      - {key: karpenter.sh/unregistered, effect: NoExecute}
    flags:
    - --node-labels="karpenter.sh/nodepool=default"
--//--
`

func seconds(n float64) metav1.Duration {
	return metav1.Duration{Duration: time.Duration(n * float64(time.Second))}
}

// start returns a server and a client of it that does not retry.
func start(t *testing.T, opts Options) (*Server, *ec2.Client) {
	t.Helper()
	s := New(opts)
	t.Cleanup(s.Close)
	return s, ec2.NewFromConfig(s.AWSConfig("AKTEST"), func(o *ec2.Options) { o.Retryer = aws.NopRetryer{} })
}

// joins lets machines join the cluster behind client.
func joins(client kubernetes.Interface) func(context.Context, ClusterInfo, string) (kubernetes.Interface, error) {
	return func(context.Context, ClusterInfo, string) (kubernetes.Interface, error) { return client, nil }
}

func (s *Server) imageNamed(t *testing.T, name string) string {
	t.Helper()
	for _, ami := range s.images {
		if ami.name == name {
			return ami.id
		}
	}
	t.Fatalf("no image %s", name)
	return ""
}

const amd64Image, arm64Image = "amazon-eks-node-al2023-x86_64-standard-1.37-v20260318", "amazon-eks-node-al2023-arm64-standard-1.37-v20260318"

func makeTemplate(t *testing.T, s *Server, client *ec2.Client, name string) {
	t.Helper()
	_, err := client.CreateLaunchTemplate(t.Context(), &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: &name,
		LaunchTemplateData: &types.RequestLaunchTemplateData{
			ImageId:  aws.String(s.imageNamed(t, amd64Image)),
			UserData: aws.String(base64.StdEncoding.EncodeToString([]byte(nodeUserData))),
			NetworkInterfaces: []types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest{{
				DeviceIndex: aws.Int32(0), Groups: []string{s.groups[0].id},
			}},
		},
		TagSpecifications: []types.TagSpecification{{
			ResourceType: types.ResourceTypeLaunchTemplate, Tags: []types.Tag{{Key: aws.String("eks:eks-cluster-name"), Value: aws.String("demo")}},
		}},
	})
	if err != nil {
		t.Fatalf("creating launch template %s: %v", name, err)
	}
}

// fleetInput asks for n instances of the types, in the zones (all if none is given).
func fleetInput(s *Server, template string, n int32, capacityType types.DefaultTargetCapacityType, instanceTypes []types.InstanceType, zones ...string) *ec2.CreateFleetInput {
	if len(zones) == 0 {
		zones = s.Zones()
	}
	var overrides []types.FleetLaunchTemplateOverridesRequest
	for _, it := range instanceTypes {
		for _, zone := range zones {
			for _, sn := range s.subnets {
				if sn.zone == zone {
					overrides = append(overrides, types.FleetLaunchTemplateOverridesRequest{
						InstanceType: it, SubnetId: aws.String(sn.id), AvailabilityZone: aws.String(zone),
					})
				}
			}
		}
	}
	return &ec2.CreateFleetInput{
		Type: types.FleetTypeInstant,
		LaunchTemplateConfigs: []types.FleetLaunchTemplateConfigRequest{{
			LaunchTemplateSpecification: &types.FleetLaunchTemplateSpecificationRequest{LaunchTemplateName: &template, Version: aws.String("$Latest")},
			Overrides:                   overrides,
		}},
		TargetCapacitySpecification: &types.TargetCapacitySpecificationRequest{TotalTargetCapacity: &n, DefaultTargetCapacityType: capacityType},
		OnDemandOptions:             onDemandOptions(capacityType),
		SpotOptions:                 spotOptions(capacityType),
		TagSpecifications: []types.TagSpecification{{
			ResourceType: types.ResourceTypeInstance, Tags: []types.Tag{{Key: aws.String("karpenter.sh/nodepool"), Value: aws.String("default")}},
		}},
	}
}

func onDemandOptions(capacityType types.DefaultTargetCapacityType) *types.OnDemandOptionsRequest {
	if capacityType != types.DefaultTargetCapacityTypeOnDemand {
		return nil
	}
	return &types.OnDemandOptionsRequest{AllocationStrategy: types.FleetOnDemandAllocationStrategyLowestPrice}
}

func spotOptions(capacityType types.DefaultTargetCapacityType) *types.SpotOptionsRequest {
	if capacityType != types.DefaultTargetCapacityTypeSpot {
		return nil
	}
	return &types.SpotOptionsRequest{AllocationStrategy: types.SpotAllocationStrategyPriceCapacityOptimized}
}

func launchedIDs(out *ec2.CreateFleetOutput) []string {
	var ids []string
	for _, group := range out.Instances {
		ids = append(ids, group.InstanceIds...)
	}
	return ids
}

// errorCode is the code of an AWS error, or "" if there is none.
func errorCode(err error) string {
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return api.ErrorCode()
	}
	if err != nil {
		return err.Error()
	}
	return ""
}
