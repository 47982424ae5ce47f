// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
)

// templateSpec is the content of a launch template. Its name is a hash of it, so that a name that exists has the right
// content.
type templateSpec struct {
	name string
	data *ec2types.RequestLaunchTemplateData
	tags map[string]string
}

// templateSpecOf is the template for a group of the types of a launch.
func (p *Provider) templateSpecOf(c *class, req *cloudprovider.LaunchRequest, capacityType string, group *templateGroup) (*templateSpec, error) {
	spec := &c.object.Spec
	labels := maps.Clone(req.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[karpv1.CapacityTypeLabelKey] = capacityType
	boot := p.bootConfig(c, c.imageNamed(group.imageID), group.maxPods)
	boot.labels, boot.taints = labels, req.Taints
	userData, err := boot.userData()
	if err != nil {
		return nil, err
	}
	tags := p.commonTags(c.object, req.NodePool)
	template := &templateSpec{
		tags: tags,
		data: &ec2types.RequestLaunchTemplateData{
			ImageId:             &group.imageID,
			UserData:            &userData,
			IamInstanceProfile:  &ec2types.LaunchTemplateIamInstanceProfileSpecificationRequest{Name: &c.profile},
			BlockDeviceMappings: blockDevices(spec, c.family),
			NetworkInterfaces:   networkInterfaces(spec, c.groups, group.efa),
			MetadataOptions:     metadataOptions(spec.MetadataOptions),
			Monitoring:          &ec2types.LaunchTemplatesMonitoringRequest{Enabled: aws.Bool(aws.ToBool(spec.DetailedMonitoring))},
			TagSpecifications:   templateTags(capacityType, tags),
		},
	}
	if spec.CPUOptions != nil && spec.CPUOptions.NestedVirtualization != nil {
		template.data.CpuOptions = &ec2types.LaunchTemplateCpuOptionsRequest{
			NestedVirtualization: ec2types.NestedVirtualizationSpecification(*spec.CPUOptions.NestedVirtualization),
		}
	}
	template.name, err = templateName(template)
	return template, err
}

// templateName hashes content and tags: two classes or pools never share a template, so that one can be forgotten.
func templateName(template *templateSpec) (string, error) {
	content, err := json.Marshal(struct {
		Data *ec2types.RequestLaunchTemplateData
		Tags map[string]string
	}{template.data, template.tags})
	if err != nil {
		return "", fmt.Errorf("hashing the launch template: %w", err)
	}
	sum := sha256.Sum256(content)
	return awsv1.LaunchTemplateNamePrefix + "/" + hex.EncodeToString(sum[:16]), nil
}

func templateTags(capacityType string, tags map[string]string) []ec2types.LaunchTemplateTagSpecificationRequest {
	kinds := []ec2types.ResourceType{ec2types.ResourceTypeNetworkInterface}
	if capacityType == spot {
		kinds = append(kinds, ec2types.ResourceTypeSpotInstancesRequest)
	}
	var list []ec2types.LaunchTemplateTagSpecificationRequest
	for _, kind := range kinds {
		list = append(list, ec2types.LaunchTemplateTagSpecificationRequest{ResourceType: kind, Tags: ec2Tags(tags)})
	}
	return list
}

// metadataOptions are the class's, with the CRD's defaults for what is not set.
func metadataOptions(options *awsv1.MetadataOptions) *ec2types.LaunchTemplateInstanceMetadataOptionsRequest {
	request := &ec2types.LaunchTemplateInstanceMetadataOptionsRequest{
		HttpEndpoint:            ec2types.LaunchTemplateInstanceMetadataEndpointStateEnabled,
		HttpProtocolIpv6:        ec2types.LaunchTemplateInstanceMetadataProtocolIpv6Disabled,
		HttpPutResponseHopLimit: aws.Int32(1),
		HttpTokens:              ec2types.LaunchTemplateHttpTokensStateRequired,
		InstanceMetadataTags:    ec2types.LaunchTemplateInstanceMetadataTagsStateDisabled,
	}
	if options == nil {
		return request
	}
	if options.HTTPEndpoint != nil {
		request.HttpEndpoint = ec2types.LaunchTemplateInstanceMetadataEndpointState(*options.HTTPEndpoint)
	}
	if options.HTTPProtocolIPv6 != nil {
		request.HttpProtocolIpv6 = ec2types.LaunchTemplateInstanceMetadataProtocolIpv6(*options.HTTPProtocolIPv6)
	}
	if options.HTTPPutResponseHopLimit != nil {
		request.HttpPutResponseHopLimit = narrow(options.HTTPPutResponseHopLimit)
	}
	if options.HTTPTokens != nil {
		request.HttpTokens = ec2types.LaunchTemplateHttpTokensState(*options.HTTPTokens)
	}
	return request
}

// blockDevices are the class's, else the family's, as encrypted gp3 disks; a custom image keeps its own.
func blockDevices(spec *awsv1.EC2NodeClassSpec, of string) []ec2types.LaunchTemplateBlockDeviceMappingRequest {
	var list []ec2types.LaunchTemplateBlockDeviceMappingRequest
	if len(spec.BlockDeviceMappings) == 0 {
		for _, d := range families[of].disks {
			list = append(list, ec2types.LaunchTemplateBlockDeviceMappingRequest{
				DeviceName: aws.String(d.device),
				Ebs: &ec2types.LaunchTemplateEbsBlockDeviceRequest{
					Encrypted: aws.Bool(true), VolumeType: ec2types.VolumeTypeGp3, VolumeSize: aws.Int32(int32(d.size / gibibyte)),
				},
			})
		}
	}
	for _, mapping := range spec.BlockDeviceMappings {
		request := ec2types.LaunchTemplateBlockDeviceMappingRequest{DeviceName: mapping.DeviceName}
		if disk := mapping.EBS; disk != nil {
			request.Ebs = &ec2types.LaunchTemplateEbsBlockDeviceRequest{
				DeleteOnTermination: disk.DeleteOnTermination, Encrypted: disk.Encrypted, KmsKeyId: disk.KMSKeyID, SnapshotId: disk.SnapshotID,
				Iops: narrow(disk.IOPS), Throughput: narrow(disk.Throughput), VolumeInitializationRate: disk.VolumeInitializationRate,
			}
			if disk.VolumeType != nil {
				request.Ebs.VolumeType = ec2types.VolumeType(*disk.VolumeType)
			}
			if disk.VolumeSize != nil {
				size := (disk.VolumeSize.Value() + gibibyte - 1) / gibibyte
				request.Ebs.VolumeSize = narrow(&size)
			}
		}
		list = append(list, request)
	}
	return list
}

// narrow clamps to what the API takes.
func narrow(n *int64) *int32 {
	if n == nil {
		return nil
	}
	return aws.Int32(int32(max(math.MinInt32, min(math.MaxInt32, *n))))
}
