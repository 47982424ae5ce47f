// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// fault is what is wrong with a class: a condition's reason and message.
type fault struct{ reason, message string }

// validate finds what the API server's own validation lets through.
func validate(spec *awsv1.EC2NodeClassSpec, family string) *fault {
	var unsupported []string
	for field, used := range map[string]bool{
		"capacityReservationSelectorTerms": len(spec.CapacityReservationSelectorTerms) > 0,
		"placementGroupSelector":           spec.PlacementGroupSelector != nil,
		"networkInterfaces":                len(spec.NetworkInterfaces) > 0,
	} {
		if used {
			unsupported = append(unsupported, field)
		}
	}
	if len(unsupported) > 0 {
		slices.Sort(unsupported)
		return &fault{"UnsupportedField", "spec." + strings.Join(unsupported, ", spec.") + ": not supported"}
	}
	for _, key := range slices.Sorted(maps.Keys(spec.Tags)) {
		for _, restricted := range awsv1.RestrictedTagPatterns {
			if restricted.MatchString(key) {
				return &fault{"TagValidationFailed", fmt.Sprintf("spec.tags: key %q is reserved", key)}
			}
		}
	}
	if spec.Kubelet == nil {
		return nil
	}
	if wrong := validateKubelet(spec.Kubelet); wrong != nil || family != awsv1.AMIFamilyBottlerocket {
		return wrong
	}
	return bottlerocketKubelet(spec.Kubelet)
}

var (
	evictionSignals  = []string{memoryAvailable, nodefsAvailable, "nodefs.inodesFree", "imagefs.available", "imagefs.inodesFree", "pid.available"}
	reservedKeys     = []string{"cpu", "memory", "ephemeral-storage", "pid"}
	invalidKubelet   = "InvalidKubeletConfiguration"
	kubeletFieldRoot = "spec.kubelet."
)

func validateKubelet(kubelet *awsv1.KubeletConfiguration) *fault {
	for _, reserved := range []struct {
		field  string
		values map[string]string
	}{{"kubeReserved", kubelet.KubeReserved}, {"systemReserved", kubelet.SystemReserved}} {
		for _, key := range slices.Sorted(maps.Keys(reserved.values)) {
			amount, err := resource.ParseQuantity(reserved.values[key])
			if err != nil || amount.Sign() < 0 || !slices.Contains(reservedKeys, key) {
				return kubeletFault("%s[%s]: %q is not valid", reserved.field, key, reserved.values[key])
			}
		}
	}
	for _, number := range []struct {
		field string
		value *int32
		most  int32
	}{
		{"maxPods", kubelet.MaxPods, math.MaxInt32},
		{"podsPerCore", kubelet.PodsPerCore, math.MaxInt32},
		{"evictionMaxPodGracePeriod", kubelet.EvictionMaxPodGracePeriod, math.MaxInt32},
		{"imageGCHighThresholdPercent", kubelet.ImageGCHighThresholdPercent, percentOfAll},
		{"imageGCLowThresholdPercent", kubelet.ImageGCLowThresholdPercent, percentOfAll},
	} {
		if number.value != nil && (*number.value < 0 || *number.value > number.most) {
			return kubeletFault("%s: %d is not valid", number.field, *number.value)
		}
	}
	if high, low := kubelet.ImageGCHighThresholdPercent, kubelet.ImageGCLowThresholdPercent; high != nil && low != nil && *high <= *low {
		return kubeletFault("imageGCHighThresholdPercent: %d is not above imageGCLowThresholdPercent %d", *high, *low)
	}
	return validateEviction(kubelet)
}

func validateEviction(kubelet *awsv1.KubeletConfiguration) *fault {
	for _, eviction := range []struct {
		field  string
		values map[string]string
	}{{"evictionHard", kubelet.EvictionHard}, {"evictionSoft", kubelet.EvictionSoft}} {
		for _, signal := range slices.Sorted(maps.Keys(eviction.values)) {
			amount, err := threshold(eviction.values[signal], 0)
			if err != nil || amount < 0 || !slices.Contains(evictionSignals, signal) {
				return kubeletFault("%s[%s]: %q is not valid", eviction.field, signal, eviction.values[signal])
			}
		}
	}
	for _, signal := range slices.Sorted(maps.Keys(kubelet.EvictionSoft)) {
		if _, has := kubelet.EvictionSoftGracePeriod[signal]; !has {
			return kubeletFault("evictionSoft[%s]: evictionSoftGracePeriod has no such signal", signal)
		}
	}
	for _, signal := range slices.Sorted(maps.Keys(kubelet.EvictionSoftGracePeriod)) {
		if _, has := kubelet.EvictionSoft[signal]; !has {
			return kubeletFault("evictionSoftGracePeriod[%s]: evictionSoft has no such signal", signal)
		}
	}
	return nil
}

func kubeletFault(format string, args ...any) *fault {
	return &fault{invalidKubelet, kubeletFieldRoot + fmt.Sprintf(format, args...)}
}
