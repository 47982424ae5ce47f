// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// kubeletLabels are the labels in Kubernetes' own domains that a kubelet may set on its node.
var kubeletLabels = []string{
	corev1.LabelHostname, corev1.LabelTopologyZone, corev1.LabelTopologyRegion, corev1.LabelFailureDomainBetaZone, corev1.LabelFailureDomainBetaRegion,
	corev1.LabelInstanceType, corev1.LabelInstanceTypeStable, corev1.LabelOSStable, corev1.LabelArchStable, "beta.kubernetes.io/os", "beta.kubernetes.io/arch",
}

var kubeletDomains = []string{"kubelet.kubernetes.io", "node.kubernetes.io"}

// CheckLabels fails as a kubelet does at its start when its --node-labels contain labels in
// Kubernetes' domains that are not a kubelet's to set.
func CheckLabels(labels map[string]string) error {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		domain, _, _ := strings.Cut(key, "/")
		ours := within(domain, "kubernetes.io") || within(domain, "k8s.io")
		allowed := slices.Contains(kubeletLabels, key) || slices.ContainsFunc(kubeletDomains, func(d string) bool { return within(domain, d) })
		if strings.Contains(key, "/") && ours && !allowed {
			return fmt.Errorf("the kubelet does not start: unknown label %q of a kubernetes.io or k8s.io domain in --node-labels", key)
		}
	}
	return nil
}

func within(domain, parent string) bool {
	return domain == parent || strings.HasSuffix(domain, "."+parent)
}
