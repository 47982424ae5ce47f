// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// fault is what is wrong with a class: a condition's reason and message.
type fault struct{ reason, message string }

var aliasPattern = regexp.MustCompile(`^[a-z0-9]+@.+$`)

// familyOf returns the class's image family, or what is wrong with its image terms. It must come before every other use
// of the class's alias: Karpenter's own parser ends the process on one that it does not know.
func familyOf(spec *awsv1.EC2NodeClassSpec) (string, *fault) {
	family := awsv1.AMIFamilyCustom
	for _, term := range spec.AMISelectorTerms {
		if term.Alias == "" {
			continue
		}
		name, _, _ := strings.Cut(term.Alias, "@")
		if !aliasPattern.MatchString(term.Alias) || name != strings.ToLower(awsv1.AMIFamilyAL2023) {
			return "", &fault{"UnsupportedAlias", fmt.Sprintf("amiSelectorTerms: alias %q is not supported, use al2023@<version>", term.Alias)}
		}
		family = awsv1.AMIFamilyAL2023
	}
	if spec.AMIFamily != nil {
		family = *spec.AMIFamily
	}
	if family != awsv1.AMIFamilyAL2023 && family != awsv1.AMIFamilyCustom {
		return "", &fault{"UnsupportedAMIFamily", fmt.Sprintf("amiFamily %s is not supported, use AL2023 or Custom", family)}
	}
	return family, nil
}

// validate finds what the API server's own validation lets through.
func validate(spec *awsv1.EC2NodeClassSpec) *fault {
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
	if spec.Kubelet != nil {
		return validateKubelet(spec.Kubelet)
	}
	return nil
}

var (
	evictionSignals  = []string{memoryAvailable, nodefsAvailable, "nodefs.inodesFree", "imagefs.available", "imagefs.inodesFree", "pid.available"}
	reservedKeys     = []string{"cpu", "memory", "ephemeral-storage", "pid"}
	invalidKubelet   = "InvalidKubeletConfiguration"
	kubeletFieldRoot = "spec.kubelet."
)

func validateKubelet(kubelet *awsv1.KubeletConfiguration) *fault {
	for field, values := range map[string]map[string]string{"kubeReserved": kubelet.KubeReserved, "systemReserved": kubelet.SystemReserved} {
		for _, key := range slices.Sorted(maps.Keys(values)) {
			amount, err := resource.ParseQuantity(values[key])
			if err != nil || amount.Sign() < 0 || !slices.Contains(reservedKeys, key) {
				return &fault{invalidKubelet, fmt.Sprintf("%s%s[%s]: %q is not valid", kubeletFieldRoot, field, key, values[key])}
			}
		}
	}
	for field, values := range map[string]map[string]string{"evictionHard": kubelet.EvictionHard, "evictionSoft": kubelet.EvictionSoft} {
		for _, signal := range slices.Sorted(maps.Keys(values)) {
			if _, err := threshold(values[signal], 0); err != nil || !slices.Contains(evictionSignals, signal) {
				return &fault{invalidKubelet, fmt.Sprintf("%s%s[%s]: %q is not valid", kubeletFieldRoot, field, signal, values[signal])}
			}
		}
	}
	for field, number := range map[string]*int32{"maxPods": kubelet.MaxPods, "podsPerCore": kubelet.PodsPerCore, "evictionMaxPodGracePeriod": kubelet.EvictionMaxPodGracePeriod} {
		if number != nil && *number < 0 {
			return &fault{invalidKubelet, fmt.Sprintf("%s%s: %d is negative", kubeletFieldRoot, field, *number)}
		}
	}
	return nil
}
