// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	v1 "k8s.io/api/core/v1"
)

// hardware is an instance type whatever class launches it. It is never changed.
type hardware struct {
	name, family string
	labels       map[string]string // of every node of the type

	vcpus, memoryMiB int64
	armMemory        bool // firmware takes a part of the memory
	storageGB        int64
	cardENIs         int64 // interfaces of the default network card
	ipv4PerENI       int64
	capacityTypes    []string
	devices          map[v1.ResourceName]int64

	nitro        bool
	nested       bool // nested virtualization
	quota        string
	branchENIs   int64
	networkCards int
}

// exotic types are launched only if nothing else will do: bare metal boots for long, accelerators are paid for.
func (h *hardware) exotic() bool {
	if strings.Contains(h.labels[awsv1.LabelInstanceSize], "metal") {
		return true
	}
	for _, name := range []v1.ResourceName{
		awsv1.ResourceNVIDIAGPU, awsv1.ResourceAMDGPU, awsv1.ResourceAWSNeuron, awsv1.ResourceAWSNeuronCore, awsv1.ResourceHabanaGaudi,
	} {
		if h.devices[name] > 0 {
			return true
		}
	}
	return false
}

// newHardware reads what EC2 says of a type, and the table what EC2 does not say; nil if it has no architecture that
// Kubernetes knows.
func newHardware(info *ec2types.InstanceTypeInfo, region string, table typeLimits) *hardware {
	arch := architecture(info)
	if arch == "" || info.VCpuInfo == nil || info.MemoryInfo == nil {
		return nil
	}
	name := string(info.InstanceType)
	family, _, _ := strings.Cut(name, ".")
	h := &hardware{
		name: name, family: family,
		vcpus: int64(aws.ToInt32(info.VCpuInfo.DefaultVCpus)), memoryMiB: aws.ToInt64(info.MemoryInfo.SizeInMiB),
		armMemory:  info.ProcessorInfo.SupportedArchitectures[0] == ec2types.ArchitectureTypeArm64,
		devices:    devices(info),
		nitro:      info.Hypervisor == ec2types.InstanceTypeHypervisorNitro,
		nested:     slices.Contains(info.ProcessorInfo.SupportedFeatures, ec2types.SupportedAdditionalProcessorFeatureNestedVirtualization),
		branchENIs: table.branchENIs,
	}
	for _, class := range []ec2types.UsageClassType{ec2types.UsageClassTypeOnDemand, ec2types.UsageClassTypeSpot} {
		if slices.Contains(info.SupportedUsageClasses, class) {
			h.capacityTypes = append(h.capacityTypes, string(class))
		}
	}
	if storage := info.InstanceStorageInfo; storage != nil {
		h.storageGB = aws.ToInt64(storage.TotalSizeInGB)
	}
	if network := info.NetworkInfo; network != nil {
		h.ipv4PerENI = int64(aws.ToInt32(network.Ipv4AddressesPerInterface))
		h.cardENIs = defaultCardENIs(network)
		h.networkCards = len(network.NetworkCards)
	}
	h.labels = typeLabels(info, arch, region, table)
	h.quota = quotaGroup(h.labels[awsv1.LabelInstanceCategory], family)
	return h
}

// architecture is the first one that Kubernetes knows, in its words.
func architecture(info *ec2types.InstanceTypeInfo) string {
	if info.ProcessorInfo == nil {
		return ""
	}
	for _, arch := range info.ProcessorInfo.SupportedArchitectures {
		if known, ok := awsv1.AWSToKubeArchitectures[string(arch)]; ok {
			return known
		}
	}
	return ""
}

func defaultCardENIs(network *ec2types.NetworkInfo) int64 {
	for _, card := range network.NetworkCards {
		if aws.ToInt32(card.NetworkCardIndex) == aws.ToInt32(network.DefaultNetworkCardIndex) {
			return int64(aws.ToInt32(card.MaximumNetworkInterfaces))
		}
	}
	return int64(aws.ToInt32(network.MaximumNetworkInterfaces))
}

// Manufacturers of GPUs, as EC2 spells them.
const makerNVIDIA, makerAMD, makerHabana = "NVIDIA", "AMD", "Habana"

// devices are what device plugins will advertise; EFA interfaces only if the launch asks for them.
func devices(info *ec2types.InstanceTypeInfo) map[v1.ResourceName]int64 {
	found := map[v1.ResourceName]int64{}
	add := func(name v1.ResourceName, n int64) {
		if n > 0 {
			found[name] += n
		}
	}
	if info.GpuInfo != nil {
		for _, gpu := range info.GpuInfo.Gpus {
			switch aws.ToString(gpu.Manufacturer) {
			case makerNVIDIA:
				add(awsv1.ResourceNVIDIAGPU, int64(aws.ToInt32(gpu.Count)))
			case makerAMD:
				add(awsv1.ResourceAMDGPU, int64(aws.ToInt32(gpu.Count)))
			case makerHabana:
				add(awsv1.ResourceHabanaGaudi, int64(aws.ToInt32(gpu.Count)))
			}
		}
	}
	if info.NeuronInfo != nil {
		for i, device := range info.NeuronInfo.NeuronDevices {
			count := int64(aws.ToInt32(device.Count))
			add(awsv1.ResourceAWSNeuron, count)
			if i == 0 && device.CoreInfo != nil {
				add(awsv1.ResourceAWSNeuronCore, count*int64(aws.ToInt32(device.CoreInfo.Count)))
			}
		}
	}
	if info.NetworkInfo != nil && info.NetworkInfo.EfaInfo != nil {
		add(awsv1.ResourceEFA, int64(aws.ToInt32(info.NetworkInfo.EfaInfo.MaximumEfaInterfaces)))
	}
	return found
}
