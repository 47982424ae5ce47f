// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	v1 "k8s.io/api/core/v1"
)

// typePattern takes category and generation from a type's name: letters, the terabytes of high-memory types, digits.
var typePattern = regexp.MustCompile(`^([a-z]+)(?:-[0-9]+tb)?([0-9]+).*\.`)

// typeLabels are the labels of every node of the type, as Karpenter sets them. What a type does not have is absent, but
// for the hypervisor: bare metal has the label with an empty value.
func typeLabels(info *ec2types.InstanceTypeInfo, arch, region string, table typeLimits) map[string]string {
	name := string(info.InstanceType)
	family, size, _ := strings.Cut(name, ".")
	labels := map[string]string{
		v1.LabelInstanceTypeStable: name,
		v1.LabelArchStable:         arch,
		v1.LabelOSStable:           string(v1.Linux),
		v1.LabelTopologyRegion:     region,

		awsv1.LabelInstanceFamily:         family,
		awsv1.LabelInstanceSize:           size,
		awsv1.LabelInstanceCapabilityFlex: strconv.FormatBool(strings.Contains(family, "-flex")),
		awsv1.LabelInstanceCPU:            decimal(aws.ToInt32(info.VCpuInfo.DefaultVCpus)),
		awsv1.LabelInstanceMemory:         decimal(aws.ToInt64(info.MemoryInfo.SizeInMiB)),
		awsv1.LabelInstanceTenancy:        string(ec2types.TenancyDefault),
		awsv1.LabelInstanceHypervisor:     string(info.Hypervisor),
	}
	if match := typePattern.FindStringSubmatch(name); match != nil {
		labels[awsv1.LabelInstanceCategory], labels[awsv1.LabelInstanceGeneration] = match[1], match[2]
	}
	addProcessor(labels, info.ProcessorInfo)
	if storage := info.InstanceStorageInfo; storage != nil && storage.NvmeSupport != ec2types.EphemeralNvmeSupportUnsupported {
		labels[awsv1.LabelInstanceLocalNVME] = decimal(aws.ToInt64(storage.TotalSizeInGB))
	}
	if disks := info.EbsInfo; disks != nil && disks.EbsOptimizedInfo != nil && disks.EbsOptimizedSupport == ec2types.EbsOptimizedSupportDefault {
		labels[awsv1.LabelInstanceEBSBandwidth] = decimal(aws.ToInt32(disks.EbsOptimizedInfo.MaximumBandwidthInMbps))
	}
	addNetwork(labels, info.NetworkInfo, table)
	addGPU(labels, info.GpuInfo)
	addAccelerator(labels, info)
	return labels
}

func addProcessor(labels map[string]string, processor *ec2types.ProcessorInfo) {
	labels[awsv1.LabelInstanceCPUSustainedClockSpeedMhz] = decimal(int64(math.Round(aws.ToFloat64(processor.SustainedClockSpeedInGhz) * 1000)))
	if maker := aws.ToString(processor.Manufacturer); maker != "" {
		labels[awsv1.LabelInstanceCPUManufacturer] = labelValue(maker)
	}
}

func addNetwork(labels map[string]string, network *ec2types.NetworkInfo, table typeLimits) {
	mbps := table.networkMbps
	encrypted := false
	if network != nil {
		encrypted = aws.ToBool(network.EncryptionInTransitSupported)
		if !table.listed {
			for _, card := range network.NetworkCards {
				mbps += int64(math.Round(aws.ToFloat64(card.BaselineBandwidthInGbps) * 1000))
			}
		}
	}
	labels[awsv1.LabelInstanceEncryptionInTransitSupported] = strconv.FormatBool(encrypted)
	if mbps > 0 {
		labels[awsv1.LabelInstanceNetworkBandwidth] = decimal(mbps)
	}
}

// addGPU labels types with one kind of GPU; of several kinds no label could be true.
func addGPU(labels map[string]string, info *ec2types.GpuInfo) {
	if info == nil || len(info.Gpus) != 1 {
		return
	}
	gpu := info.Gpus[0]
	labels[awsv1.LabelInstanceGPUName] = labelValue(aws.ToString(gpu.Name))
	labels[awsv1.LabelInstanceGPUManufacturer] = labelValue(aws.ToString(gpu.Manufacturer))
	labels[awsv1.LabelInstanceGPUCount] = decimal(aws.ToInt32(gpu.Count))
	if gpu.MemoryInfo != nil {
		labels[awsv1.LabelInstanceGPUMemory] = decimal(aws.ToInt32(gpu.MemoryInfo.SizeInMiB))
	}
}

func addAccelerator(labels map[string]string, info *ec2types.InstanceTypeInfo) {
	set := func(name, maker string, count int32) {
		labels[awsv1.LabelInstanceAcceleratorName] = labelValue(name)
		labels[awsv1.LabelInstanceAcceleratorManufacturer] = labelValue(maker)
		labels[awsv1.LabelInstanceAcceleratorCount] = decimal(count)
	}
	if neuron := info.NeuronInfo; neuron != nil {
		if len(neuron.NeuronDevices) == 1 {
			set(aws.ToString(neuron.NeuronDevices[0].Name), "aws", aws.ToInt32(neuron.NeuronDevices[0].Count))
		}
		return
	}
	if inference := info.InferenceAcceleratorInfo; inference != nil && len(inference.Accelerators) == 1 {
		device := inference.Accelerators[0]
		set(aws.ToString(device.Name), aws.ToString(device.Manufacturer), aws.ToInt32(device.Count))
	}
}

// labelValue writes a name of the API as a label value.
func labelValue(name string) string {
	return strings.ReplaceAll(strings.ToLower(name), " ", "-")
}

func decimal[N int32 | int64](n N) string { return strconv.FormatInt(int64(n), 10) }
