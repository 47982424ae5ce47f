// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// admissionReasons are the status reasons with which a kubelet refuses a pod;
// beside them stands every reason that begins with OutOf.
var admissionReasons = []string{
	"AppArmor", "InitContainerRestartPolicyForbidden", "InvalidNodeInfo", "NodeAffinity", "NodeName", "NodePorts",
	"NodeUnschedulable", "PodFeatureUnsupported", "PodLevelResourcesNotSupported", "PodOSNotSupported",
	"PodOSSelectorNodeLabelDoesNotMatch", "SupplementalGroupsPolicyNotSupported", "SysctlForbidden",
	"TaintToleration", "TopologyAffinityError", "UnexpectedAdmissionError", "UnknownReason",
}

// podFailedAdmission: no pod is Failed by a kubelet's admission.
type podFailedAdmission struct{ noFinish }

func newPodFailedAdmission(*input) invariant { return podFailedAdmission{} }

func (podFailedAdmission) step(_ *world, c *change, report reporter) {
	if c.Pod == nil || c.Op == Deleted || !refused(c.Pod) || (c.oldPod != nil && refused(c.oldPod)) {
		return
	}
	report(c.Time, podName(c.Pod), "refused by the kubelet of %s: %s: %s",
		c.Pod.Spec.NodeName, c.Pod.Status.Reason, c.Pod.Status.Message)
}

func refused(pod *corev1.Pod) bool {
	reason := pod.Status.Reason
	return pod.Status.Phase == corev1.PodFailed &&
		(strings.HasPrefix(reason, "OutOf") || slices.Contains(admissionReasons, reason))
}
