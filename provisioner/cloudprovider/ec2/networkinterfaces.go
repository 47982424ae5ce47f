// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
)

const efaInterface = "efa"

// wantsEFA says that pods of the launch ask for EFA interfaces: then its machines get all that their type can have.
func wantsEFA(req *cloudprovider.LaunchRequest) bool {
	asked := req.Requests[awsv1.ResourceEFA]
	return !asked.IsZero()
}

// networkInterfaces are one, or as many for EFA as asked: one on each network card, the first being the machine's
// primary interface.
func networkInterfaces(spec *awsv1.EC2NodeClassSpec, groups []string, efa int64) []ec2types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest {
	list := []ec2types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest{networkInterface(spec, groups)}
	if efa > 0 {
		list[0].InterfaceType = aws.String(efaInterface)
	}
	if efa > 1 {
		list[0].AssociatePublicIpAddress = nil // EC2 takes it only for a machine's single interface
	}
	for card := int64(1); card < efa; card++ {
		list = append(list, ec2types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest{
			DeviceIndex: aws.Int32(1), NetworkCardIndex: aws.Int32(int32(card)), Groups: groups, InterfaceType: aws.String(efaInterface),
		})
	}
	return list
}

// networkInterface is the first one. Groups belong to it: a template with an interface may not name groups itself.
func networkInterface(spec *awsv1.EC2NodeClassSpec, groups []string) ec2types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest {
	network := ec2types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest{
		DeviceIndex: aws.Int32(0), NetworkCardIndex: aws.Int32(0), Groups: groups,
		AssociatePublicIpAddress: spec.AssociatePublicIPAddress, Ipv4PrefixCount: spec.IPPrefixCount,
	}
	if tracking := spec.ConnectionTracking; tracking != nil {
		network.ConnectionTrackingSpecification = &ec2types.ConnectionTrackingSpecificationRequest{
			TcpEstablishedTimeout: tracking.TCPEstablishedTimeout, UdpStreamTimeout: tracking.UDPStreamTimeout, UdpTimeout: tracking.UDPTimeout,
		}
	}
	return network
}
