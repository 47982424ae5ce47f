// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"maps"
	"slices"
	"strings"
)

// fingerprint is equal for two requests with the same parameters, the client token left out.
func (f form) fingerprint() string {
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(f)) {
		if key != "ClientToken" {
			text.WriteString(key + "\x00" + f[key] + "\x00")
		}
	}
	return text.String()
}

func errTokenMismatch(token string) *apiError {
	return errorf("IdempotentParameterMismatch", "The client token '%s' was used before, with other parameters.", token)
}

// keySet reads one key shape per word; # stands for a list position.
func keySet(shapes string) map[string]bool {
	set := map[string]bool{}
	for shape := range strings.FieldsSeq(shapes) {
		set[shape] = true
	}
	return set
}

// createFleetKeys are the parameters that this endpoint gives meaning to. Others are refused, so
// that a client that starts to rely on them is seen.
var createFleetKeys = keySet(`
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
	TagSpecification.#.ResourceType TagSpecification.#.Tag.#.Key TagSpecification.#.Tag.#.Value
	TargetCapacitySpecification.DefaultTargetCapacityType
	TargetCapacitySpecification.TotalTargetCapacity
`)

var createLaunchTemplateKeys = keySet(`
	ClientToken DryRun LaunchTemplateName VersionDescription
	TagSpecification.#.ResourceType TagSpecification.#.Tag.#.Key TagSpecification.#.Tag.#.Value
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
`)
