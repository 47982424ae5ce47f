// SPDX-License-Identifier: Apache-2.0

package fakeaws

import "strings"

const (
	// paged, filtered and tagged are what many EC2 actions take alike. # stands for a list position.
	paged    = " DryRun MaxResults NextToken "
	filtered = " Filter.#.Name Filter.#.Value.# "
	tagged   = " TagSpecification.#.ResourceType TagSpecification.#.Tag.#.Key TagSpecification.#.Tag.#.Value "
)

// requestKeys are the parameters that this endpoint gives meaning to, by action. Others are refused, so that a client
// that starts to rely on them is seen.
var requestKeys = map[string]map[string]bool{
	"ec2/CreateFleet":                   keySet(tagged + createFleetKeys),
	"ec2/CreateLaunchTemplate":          keySet(tagged + createLaunchTemplateKeys),
	"ec2/CreateTags":                    keySet("DryRun ResourceId.# Tag.#.Key Tag.#.Value"),
	"ec2/DeleteLaunchTemplate":          keySet("DryRun LaunchTemplateId LaunchTemplateName"),
	"ec2/DescribeCapacityReservations":  keySet(paged + filtered + "CapacityReservationId.#"),
	"ec2/DescribeImages":                keySet(paged + filtered + "ImageId.# Owner.# IncludeDeprecated IncludeDisabled"),
	"ec2/DescribeInstances":             keySet(paged + filtered + "InstanceId.#"),
	"ec2/DescribeInstanceStatus":        keySet(paged + filtered + "InstanceId.# IncludeAllInstances"),
	"ec2/DescribeInstanceTypeOfferings": keySet(paged + filtered + "LocationType"),
	"ec2/DescribeInstanceTypes":         keySet(paged + filtered + "InstanceType.#"),
	"ec2/DescribeLaunchTemplates":       keySet(paged + filtered + "LaunchTemplateId.# LaunchTemplateName.#"),
	"ec2/DescribePlacementGroups":       keySet("DryRun GroupId.# GroupName.#" + filtered),
	"ec2/DescribeSecurityGroups":        keySet(paged + filtered + "GroupId.# GroupName.#"),
	"ec2/DescribeSpotPriceHistory":      keySet(paged + filtered + "AvailabilityZone StartTime EndTime InstanceType.# ProductDescription.#"),
	"ec2/DescribeSubnets":               keySet(paged + filtered + "SubnetId.#"),
	"ec2/RebootInstances":               keySet("DryRun InstanceId.#"),
	"ec2/RunInstances":                  keySet(tagged + runInstancesKeys),
	"ec2/TerminateInstances":            keySet("DryRun InstanceId.#"),

	"iam/AddRoleToInstanceProfile":      keySet("InstanceProfileName RoleName"),
	"iam/CreateInstanceProfile":         keySet("InstanceProfileName Path Tags.member.#.Key Tags.member.#.Value"),
	"iam/DeleteInstanceProfile":         keySet("InstanceProfileName"),
	"iam/GetInstanceProfile":            keySet("InstanceProfileName"),
	"iam/GetRole":                       keySet("RoleName"),
	"iam/ListInstanceProfiles":          keySet("PathPrefix Marker MaxItems"),
	"iam/RemoveRoleFromInstanceProfile": keySet("InstanceProfileName RoleName"),
	"iam/TagInstanceProfile":            keySet("InstanceProfileName Tags.member.#.Key Tags.member.#.Value"),

	"sqs/DeleteMessage":      keySet("QueueUrl ReceiptHandle"),
	"sqs/GetQueueAttributes": keySet("QueueUrl AttributeNames.#"),
	"sqs/GetQueueUrl":        keySet("QueueName QueueOwnerAWSAccountId"),
	"sqs/ReceiveMessage": keySet("QueueUrl MaxNumberOfMessages VisibilityTimeout WaitTimeSeconds AttributeNames.#" +
		" MessageAttributeNames.# MessageSystemAttributeNames.#"),
	"sqs/SendMessage": keySet("QueueUrl MessageBody"),

	"arc-zonal-shift/GetManagedResource": keySet("resourceIdentifier"),
	"eks/DescribeCluster":                keySet("name"),
	"pricing/GetProducts":                keySet("ServiceCode Filters.#.Field Filters.#.Type Filters.#.Value FormatVersion MaxResults NextToken"),
	"ssm/GetParameter":                   keySet("Name WithDecryption"),
	"sts/DecodeAuthorizationMessage":     keySet("EncodedMessage"),
	"sts/GetCallerIdentity":              keySet(""),
}

// keySet reads one key shape per word.
func keySet(shapes string) map[string]bool {
	set := map[string]bool{}
	for shape := range strings.FieldsSeq(shapes) {
		set[shape] = true
	}
	return set
}

// checkKeys refuses what the action's part of this endpoint gives no meaning to.
func checkKeys(r *request) *apiError {
	if unknown := form(r.params).unknownKeys(requestKeys[r.service+"/"+r.action]); len(unknown) > 0 {
		return errorf("UnknownParameter", "The parameters %s are not recognized by this endpoint", strings.Join(unknown, ", "))
	}
	return nil
}

const createFleetKeys = `
	ClientToken Context DryRun Type
	LaunchTemplateConfigs.#.LaunchTemplateSpecification.LaunchTemplateId
	LaunchTemplateConfigs.#.LaunchTemplateSpecification.LaunchTemplateName
	LaunchTemplateConfigs.#.LaunchTemplateSpecification.Version
	LaunchTemplateConfigs.#.Overrides.#.AvailabilityZone
	LaunchTemplateConfigs.#.Overrides.#.ImageId
	LaunchTemplateConfigs.#.Overrides.#.InstanceType
	LaunchTemplateConfigs.#.Overrides.#.Priority
	LaunchTemplateConfigs.#.Overrides.#.SubnetId
	OnDemandOptions.AllocationStrategy
	ReservedCapacityOptions.ReservationType.#
	SpotOptions.AllocationStrategy
	TargetCapacitySpecification.DefaultTargetCapacityType
	TargetCapacitySpecification.TotalTargetCapacity
`

const runInstancesKeys = `
	ClientToken DryRun ImageId InstanceType MaxCount MinCount SubnetId
	LaunchTemplate.LaunchTemplateId LaunchTemplate.LaunchTemplateName LaunchTemplate.Version
	NetworkInterface.#.DeviceIndex NetworkInterface.#.SubnetId
`

const createLaunchTemplateKeys = `
	ClientToken DryRun LaunchTemplateName VersionDescription
	LaunchTemplateData.BlockDeviceMapping.#.DeviceName
	LaunchTemplateData.BlockDeviceMapping.#.Ebs.DeleteOnTermination
	LaunchTemplateData.BlockDeviceMapping.#.Ebs.Encrypted
	LaunchTemplateData.BlockDeviceMapping.#.Ebs.Iops
	LaunchTemplateData.BlockDeviceMapping.#.Ebs.KmsKeyId
	LaunchTemplateData.BlockDeviceMapping.#.Ebs.SnapshotId
	LaunchTemplateData.BlockDeviceMapping.#.Ebs.Throughput
	LaunchTemplateData.BlockDeviceMapping.#.Ebs.VolumeInitializationRate
	LaunchTemplateData.BlockDeviceMapping.#.Ebs.VolumeSize
	LaunchTemplateData.BlockDeviceMapping.#.Ebs.VolumeType
	LaunchTemplateData.CapacityReservationSpecification.CapacityReservationPreference
	LaunchTemplateData.CapacityReservationSpecification.CapacityReservationTarget.CapacityReservationId
	LaunchTemplateData.CpuOptions.AmdSevSnp LaunchTemplateData.CpuOptions.CoreCount
	LaunchTemplateData.CpuOptions.NestedVirtualization LaunchTemplateData.CpuOptions.ThreadsPerCore
	LaunchTemplateData.EnclaveOptions.Enabled
	LaunchTemplateData.IamInstanceProfile.Arn LaunchTemplateData.IamInstanceProfile.Name
	LaunchTemplateData.ImageId LaunchTemplateData.UserData
	LaunchTemplateData.InstanceMarketOptions.MarketType
	LaunchTemplateData.MetadataOptions.HttpEndpoint LaunchTemplateData.MetadataOptions.HttpProtocolIpv6
	LaunchTemplateData.MetadataOptions.HttpPutResponseHopLimit LaunchTemplateData.MetadataOptions.HttpTokens
	LaunchTemplateData.MetadataOptions.InstanceMetadataTags
	LaunchTemplateData.Monitoring.Enabled
	LaunchTemplateData.NetworkInterface.#.AssociatePublicIpAddress
	LaunchTemplateData.NetworkInterface.#.ConnectionTrackingSpecification.TcpEstablishedTimeout
	LaunchTemplateData.NetworkInterface.#.ConnectionTrackingSpecification.UdpStreamTimeout
	LaunchTemplateData.NetworkInterface.#.ConnectionTrackingSpecification.UdpTimeout
	LaunchTemplateData.NetworkInterface.#.DeleteOnTermination
	LaunchTemplateData.NetworkInterface.#.DeviceIndex LaunchTemplateData.NetworkInterface.#.InterfaceType
	LaunchTemplateData.NetworkInterface.#.Ipv4PrefixCount LaunchTemplateData.NetworkInterface.#.Ipv6AddressCount
	LaunchTemplateData.NetworkInterface.#.Ipv6PrefixCount LaunchTemplateData.NetworkInterface.#.NetworkCardIndex
	LaunchTemplateData.NetworkInterface.#.PrimaryIpv6 LaunchTemplateData.NetworkInterface.#.SecurityGroupId.#
	LaunchTemplateData.Placement.GroupId LaunchTemplateData.Placement.GroupName
	LaunchTemplateData.Placement.PartitionNumber LaunchTemplateData.Placement.Tenancy
	LaunchTemplateData.SecurityGroupId.#
	LaunchTemplateData.TagSpecification.#.ResourceType
	LaunchTemplateData.TagSpecification.#.Tag.#.Key LaunchTemplateData.TagSpecification.#.Tag.#.Value
`
