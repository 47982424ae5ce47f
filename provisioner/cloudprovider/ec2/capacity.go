// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	mebibyte = int64(1) << 20
	gibibyte = int64(1) << 30

	armFirmwareMiB = 64 // taken before the hypervisor's share

	// What the kubelet of an AL2023 image reserves.
	reservedMiB       = 255
	reservedMiBPerPod = 11
	reservedStorage   = gibibyte
	evictionMemory    = 100 * mebibyte
	evictionStorage   = 10 // per cent
	memoryAvailable   = "memory.available"
	nodefsAvailable   = "nodefs.available"
	defaultRootDisk   = 20 * gibibyte
	defaultDeviceAL   = "/dev/xvda"
	cpuStepsBase      = 1_000_000 // of the shares below
	bytesPerGB        = 1_000_000_000
	podsWithoutENI    = 2 // on the host's own network: VPC CNI and kube-proxy
	addressesOfTheENI = 1 // the interface's own address
	milliCPUPerCPU    = 1000
	percentOfAll      = 100
	maxAmount         = int64(1) << 50 // a pebibyte
)

// machineShape is what a class adds to the arithmetic of capacity.
type machineShape struct {
	memoryOverhead float64
	reservedENIs   int64
	kubelet        awsv1.KubeletConfiguration
	disk           int64 // bytes of the disk that holds pods' data
	// reservesByMaxPods: memory is reserved for the pods that the kubelet is told, not for the type's addresses.
	reservesByMaxPods bool
	raid0             bool // instance store disks hold them instead, where there are any
}

// eniPods is the number of pods that the VPC CNI has addresses for.
func (h *hardware) eniPods(reservedENIs int64) int64 {
	usable := h.cardENIs - reservedENIs
	if usable <= 0 {
		return 0
	}
	return max(0, usable*(h.ipv4PerENI-addressesOfTheENI)+podsWithoutENI)
}

// maxPods is what the kubelet is told: the class's number, else what the network allows.
func (h *hardware) maxPods(shape *machineShape) int64 {
	if shape.kubelet.MaxPods != nil {
		return int64(*shape.kubelet.MaxPods)
	}
	return h.eniPods(shape.reservedENIs)
}

// pods is what the kubelet will admit.
func (h *hardware) pods(shape *machineShape) int64 {
	pods := h.maxPods(shape)
	if perCore := shape.kubelet.PodsPerCore; perCore != nil && *perCore > 0 {
		pods = min(pods, int64(*perCore)*h.vcpus)
	}
	return max(pods, 0)
}

// reservedPods is for how many pods the image reserves memory. AL2023 counts all the type's addresses, whatever maxPods
// says.
func (h *hardware) reservedPods(shape *machineShape) int64 {
	if shape.reservesByMaxPods {
		return h.pods(shape)
	}
	return h.eniPods(0)
}

// machineSize is what a machine has, what of it is not for pods, and what pods get.
type machineSize struct{ capacity, overhead, allocatable v1.ResourceList }

// size is how large a machine of the type is for pods. The error names the setting of the class that cannot be read.
func (h *hardware) size(shape *machineShape) (machineSize, error) {
	total := h.total(shape)
	reserved, err := h.reserved(shape, total)
	if err != nil {
		return machineSize{}, err
	}
	size := machineSize{v1.ResourceList{}, v1.ResourceList{}, v1.ResourceList{}}
	diskFormat := resource.BinarySI
	if total[v1.ResourceEphemeralStorage]%gibibyte != 0 {
		diskFormat = resource.DecimalSI // instance store, and what was written as 20G
	}
	for name, amount := range total {
		size.capacity[name] = quantity(name, amount, diskFormat)
		size.allocatable[name] = quantity(name, max(0, amount-reserved[name]), diskFormat)
	}
	for name, amount := range reserved {
		size.overhead[name] = quantity(name, amount, resource.BinarySI)
	}
	return size, nil
}

// total is in milli-CPU, bytes and pieces.
func (h *hardware) total(shape *machineShape) map[v1.ResourceName]int64 {
	memory := h.memoryMiB
	if h.armMemory {
		memory -= armFirmwareMiB
	}
	memory -= int64(math.Ceil(float64(memory) * shape.memoryOverhead))
	disk := shape.disk
	if shape.raid0 && h.storageGB > 0 {
		disk = h.storageGB * bytesPerGB
	}
	total := map[v1.ResourceName]int64{
		v1.ResourceCPU:              h.vcpus * milliCPUPerCPU,
		v1.ResourceMemory:           max(0, memory) * mebibyte,
		v1.ResourceEphemeralStorage: disk,
		v1.ResourcePods:             h.pods(shape),
	}
	maps.Copy(total, h.devices)
	if h.branchENIs > 0 {
		total[awsv1.ResourceAWSPodENI] = h.branchENIs
	}
	return total
}

func (h *hardware) reserved(shape *machineShape, total map[v1.ResourceName]int64) (map[v1.ResourceName]int64, error) {
	kube := map[v1.ResourceName]int64{
		v1.ResourceCPU:              reservedMilliCPU(total[v1.ResourceCPU]),
		v1.ResourceMemory:           (reservedMiBPerPod*h.reservedPods(shape) + reservedMiB) * mebibyte,
		v1.ResourceEphemeralStorage: reservedStorage,
	}
	if err := readReserved(kube, "kubeReserved", shape.kubelet.KubeReserved); err != nil {
		return nil, err
	}
	system := map[v1.ResourceName]int64{}
	if err := readReserved(system, "systemReserved", shape.kubelet.SystemReserved); err != nil {
		return nil, err
	}
	eviction := map[v1.ResourceName]int64{
		v1.ResourceMemory:           evictionMemory,
		v1.ResourceEphemeralStorage: share(total[v1.ResourceEphemeralStorage], evictionStorage),
	}
	for signal, name := range map[string]v1.ResourceName{memoryAvailable: v1.ResourceMemory, nodefsAvailable: v1.ResourceEphemeralStorage} {
		text, ok := shape.kubelet.EvictionHard[signal]
		if !ok {
			continue
		}
		amount, err := threshold(text, total[name])
		if err != nil {
			return nil, fmt.Errorf("evictionHard[%s]: %w", signal, err)
		}
		eviction[name] = amount
	}
	for name, amount := range system {
		kube[name] += amount
	}
	for name, amount := range eviction {
		kube[name] += amount
	}
	return kube, nil
}

// reservedMilliCPU grows with the machine: 6 % of the first CPU, 1 % of the second, 0.5 % of the next two, 0.25 % of
// the rest, each part in whole milli-CPUs.
func reservedMilliCPU(total int64) int64 {
	steps := []struct{ upTo, share int64 }{{1000, 60_000}, {2000, 10_000}, {4000, 5_000}, {math.MaxInt64, 2_500}}
	reserved, from := int64(0), int64(0)
	for _, step := range steps {
		if part := min(total, step.upTo) - from; part > 0 {
			reserved += part * step.share / cpuStepsBase
		}
		from = step.upTo
	}
	return reserved
}

func readReserved(into map[v1.ResourceName]int64, field string, values map[string]string) error {
	for key, text := range values {
		amount, err := parseAmount(text)
		if err != nil {
			return fmt.Errorf("%s[%s]: %w", field, key, err)
		}
		name := v1.ResourceName(key)
		if name == v1.ResourceCPU {
			into[name] = amount.MilliValue()
		} else {
			into[name] = amount.Value()
		}
	}
	return nil
}

// parseAmount reads a quantity that sums with others without overflow, in thousandths too.
func parseAmount(text string) (resource.Quantity, error) {
	amount, err := resource.ParseQuantity(text)
	switch {
	case err != nil:
		return amount, fmt.Errorf("%q is not a quantity: %w", text, err)
	case amount.Sign() < 0:
		return amount, fmt.Errorf("%q is negative", text)
	case amount.CmpInt64(maxAmount) > 0:
		return amount, fmt.Errorf("%q is more than any machine has", text)
	}
	return amount, nil
}

// threshold is a signal's amount: a quantity, or a percentage of total, where all of it means never.
func threshold(text string, total int64) (int64, error) {
	if percent, ok := strings.CutSuffix(text, "%"); ok {
		value, err := strconv.ParseFloat(percent, 64)
		if err != nil || !(value >= 0 && value <= percentOfAll) { // NaN is neither
			return 0, fmt.Errorf("%q is not a percentage", text)
		}
		if value == percentOfAll {
			return 0, nil
		}
		return share(total, value), nil
	}
	amount, err := parseAmount(text)
	if err != nil {
		return 0, err
	}
	return amount.Value(), nil
}

func share(total int64, percent float64) int64 {
	return int64(math.Ceil(float64(total) / percentOfAll * percent))
}

func quantity(name v1.ResourceName, amount int64, diskFormat resource.Format) resource.Quantity {
	switch name {
	case v1.ResourceCPU:
		return *resource.NewMilliQuantity(amount, resource.DecimalSI)
	case v1.ResourceMemory:
		return *resource.NewQuantity(amount, resource.BinarySI)
	case v1.ResourceEphemeralStorage:
		return *resource.NewQuantity(amount, diskFormat)
	default:
		return *resource.NewQuantity(amount, resource.DecimalSI)
	}
}
