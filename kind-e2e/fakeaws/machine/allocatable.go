// SPDX-License-Identifier: Apache-2.0

// Package machine is what boots on a launched instance: a kubelet, as far as the API server can
// see. It decides what a node can hold and what its Node object says; it knows only its instance
// type and the user data, never who launched it. The fake endpoint calls it.
package machine

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/fakeaws/catalogue"
	"github.com/jit-scheduler/jit-scheduler/kind-e2e/fakeaws/userdata"
)

const (
	mi = int64(1) << 20
	gi = int64(1) << 30

	armMemoryLossMiB   = 64    // firmware of arm64 machines takes it before the hypervisor's share
	hypervisorShare    = 0.075 // of the advertised memory that the guest does not see
	evictionMemoryMi   = 100
	reservedStorageGi  = 1
	evictionStorage    = 0.10
	defaultRootDiskGiB = 20
)

// Hardware is what an instance offers its operating system.
type Hardware struct {
	Type        catalogue.Type
	RootDiskGiB int64 // 0 means 20
	// Deviation is by which share the real machine differs from the arithmetic, per resource:
	// -0.02 for memory is a machine with 2 per cent less allocatable memory.
	Deviation map[corev1.ResourceName]float64
	// DevicePlugins says that GPUs and accelerators are advertised from the start.
	DevicePlugins bool
}

// Resources returns capacity and allocatable of a node, as its kubelet would report them. It fails
// when the user data reserves something that is no quantity.
func Resources(hardware Hardware, config userdata.Config) (capacity, allocatable corev1.ResourceList, err error) {
	amounts := hardware.capacity(config)
	left, err := subtractReserved(hardware, config, amounts)
	if err != nil {
		return nil, nil, err
	}
	for name, share := range hardware.Deviation {
		if before, ok := left[name]; ok {
			delta := int64(math.Round(float64(before) * share))
			left[name] += delta
			amounts[name] += delta
		}
	}
	return resourceList(amounts), resourceList(left), nil
}

// capacity is in milli-CPU, bytes and counts.
func (h Hardware) capacity(config userdata.Config) map[corev1.ResourceName]int64 {
	memoryMiB := int64(h.Type.MemoryMiB)
	if h.Type.Arch == "arm64" {
		memoryMiB -= armMemoryLossMiB
	}
	memoryMiB -= int64(math.Ceil(float64(memoryMiB) * hypervisorShare))
	disk := h.RootDiskGiB
	if disk == 0 {
		disk = defaultRootDiskGiB
	}
	amounts := map[corev1.ResourceName]int64{
		corev1.ResourceCPU:              int64(h.Type.VCPU) * 1000,
		corev1.ResourceMemory:           memoryMiB * mi,
		corev1.ResourceEphemeralStorage: disk * gi,
		corev1.ResourcePods:             maxPods(h.Type, config),
	}
	if config.RAID0 && h.Type.NVMeGB > 0 {
		amounts[corev1.ResourceEphemeralStorage] = int64(h.Type.NVMeGB) * 1e9
	}
	if h.DevicePlugins {
		for name, count := range h.Type.Resources {
			if n, err := strconv.ParseInt(count, 10, 64); err == nil {
				amounts[corev1.ResourceName(name)] = n
			}
		}
	}
	return amounts
}

func maxPods(t catalogue.Type, config userdata.Config) int64 {
	pods := int64(t.ENIPods())
	if config.MaxPods != nil {
		pods = *config.MaxPods
	}
	if config.PodsPerCore > 0 {
		pods = min(pods, config.PodsPerCore*int64(t.VCPU))
	}
	return max(pods, 0)
}

func subtractReserved(h Hardware, config userdata.Config, capacity map[corev1.ResourceName]int64) (map[corev1.ResourceName]int64, error) {
	// AL2023 computes its default reservation from the type's address count, whatever maxPods says.
	pods := int64(h.Type.ENIPods())
	if config.ReservesByMaxPods {
		pods = capacity[corev1.ResourcePods]
	}
	kube := map[string]int64{
		"cpu":               reservedMilliCPU(int64(h.Type.VCPU) * 1000),
		"memory":            (11*pods + 255) * mi,
		"ephemeral-storage": reservedStorageGi * gi,
	}
	if err := overlay(kube, config.KubeReserved); err != nil {
		return nil, fmt.Errorf("reading kubeReserved: %w", err)
	}
	system := map[string]int64{}
	if err := overlay(system, config.SystemReserved); err != nil {
		return nil, fmt.Errorf("reading systemReserved: %w", err)
	}
	eviction, err := evictionThresholds(config.EvictionHard, capacity)
	if err != nil {
		return nil, fmt.Errorf("reading evictionHard: %w", err)
	}
	left := map[corev1.ResourceName]int64{}
	for name, amount := range capacity {
		left[name] = max(0, amount-kube[string(name)]-system[string(name)]-eviction[name])
	}
	return left, nil
}

// reservedMilliCPU is the default of the EKS images: 6 % of the first core, 1 % of the second,
// 0.5 % of the third and fourth, 0.25 % of the others.
func reservedMilliCPU(total int64) int64 {
	steps := []struct {
		upTo  int64
		share float64
	}{{1000, 0.06}, {2000, 0.01}, {4000, 0.005}, {math.MaxInt64, 0.0025}}
	reserved, from := int64(0), int64(0)
	for _, step := range steps {
		if part := min(total, step.upTo) - from; part > 0 {
			reserved += int64(float64(part) * step.share)
		}
		from = step.upTo
	}
	return reserved
}

func overlay(into map[string]int64, values map[string]string) error {
	for name, text := range values {
		quantity, err := resource.ParseQuantity(text)
		if err != nil {
			return fmt.Errorf("%s %q: %w", name, text, err)
		}
		if name == "cpu" {
			into[name] = quantity.MilliValue()
		} else {
			into[name] = quantity.Value()
		}
	}
	return nil
}

func evictionThresholds(hard map[string]string, capacity map[corev1.ResourceName]int64) (map[corev1.ResourceName]int64, error) {
	storage := capacity[corev1.ResourceEphemeralStorage]
	thresholds := map[corev1.ResourceName]int64{
		corev1.ResourceMemory:           evictionMemoryMi * mi,
		corev1.ResourceEphemeralStorage: int64(math.Ceil(float64(storage) * evictionStorage)),
	}
	signals := map[string]corev1.ResourceName{
		"memory.available": corev1.ResourceMemory,
		"nodefs.available": corev1.ResourceEphemeralStorage,
	}
	for signal, text := range hard {
		name, ok := signals[signal]
		if !ok {
			continue
		}
		amount, err := threshold(text, capacity[name])
		if err != nil {
			return nil, fmt.Errorf("%s %q: %w", signal, text, err)
		}
		thresholds[name] = amount
	}
	return thresholds, nil
}

// threshold reads a quantity or a percentage of the capacity; 100 % switches the signal off.
func threshold(text string, capacity int64) (int64, error) {
	if percent, ok := strings.CutSuffix(text, "%"); ok {
		p, err := strconv.ParseFloat(percent, 64)
		if err != nil {
			return 0, err
		}
		if p >= 100 {
			return 0, nil
		}
		return int64(math.Ceil(float64(capacity) / 100 * p)), nil
	}
	quantity, err := resource.ParseQuantity(text)
	if err != nil {
		return 0, err
	}
	return quantity.Value(), nil
}

func resourceList(amounts map[corev1.ResourceName]int64) corev1.ResourceList {
	list := corev1.ResourceList{}
	for name, amount := range amounts {
		switch name {
		case corev1.ResourceCPU:
			list[name] = *resource.NewMilliQuantity(amount, resource.DecimalSI)
		case corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
			list[name] = *resource.NewQuantity(amount/1024*1024, resource.BinarySI) // kubelets report Ki
		default:
			list[name] = *resource.NewQuantity(amount, resource.DecimalSI)
		}
	}
	return list
}

// Deviate is a copy of the resources of which each differs by its share.
func Deviate(resources corev1.ResourceList, deviation map[corev1.ResourceName]float64) corev1.ResourceList {
	deviated := resources.DeepCopy()
	for name, share := range deviation {
		before, ok := deviated[name]
		if !ok {
			continue
		}
		if name == corev1.ResourceCPU {
			deviated[name] = *resource.NewMilliQuantity(int64(math.Round(float64(before.MilliValue())*(1+share))), before.Format)
			continue
		}
		deviated[name] = *resource.NewQuantity(int64(math.Round(float64(before.Value())*(1+share))), before.Format)
	}
	return deviated
}
