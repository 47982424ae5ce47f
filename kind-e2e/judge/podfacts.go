// SPDX-License-Identifier: Apache-2.0

package judge

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	schedulinghelper "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
)

// effectiveRequests is what the pod takes of its node, by resource: CPU in
// thousandths, all else in units, and one of "pods". Init containers, sidecars,
// overhead, pod-level resources and resizes count as in Kubernetes. Nil for a
// pod that takes nothing: not bound, or terminal.
func effectiveRequests(pod *corev1.Pod) map[corev1.ResourceName]int64 {
	if pod.Spec.NodeName == "" || terminal(pod) {
		return nil
	}
	requests := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{
		UseStatusResources: true,
		InPlacePodLevelResourcesVerticalScalingEnabled: true,
		UseDRANodeAllocatableResourceClaimStatus:       true,
	})
	units := amounts(requests)
	units[corev1.ResourcePods] = 1
	return units
}

// amounts turns a resource list into numbers: CPU in thousandths, all else in units.
func amounts(list corev1.ResourceList) map[corev1.ResourceName]int64 {
	units := make(map[corev1.ResourceName]int64, len(list)+1)
	for name, quantity := range list {
		if name == corev1.ResourceCPU {
			units[name] = quantity.MilliValue()
		} else {
			units[name] = quantity.Value()
		}
	}
	return units
}

func terminal(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// ofDaemonSet reports whether a DaemonSet owns the pod.
func ofDaemonSet(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && owner.Kind == "DaemonSet"
}

// tolerates reports whether the pod tolerates key:NoSchedule. A toleration of
// NoExecute alone, which admission gives to every pod for not-ready nodes, does not count.
func tolerates(pod *corev1.Pod, key string) bool {
	taint := &corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule}
	return schedulinghelper.TolerationsTolerateTaint(klog.Background(), pod.Spec.Tolerations, taint, false)
}

// podCondition is the condition of that type, nil if there is none.
func podCondition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// ready reports whether the kubelet of the node says that it is ready.
func ready(node *corev1.Node) bool {
	for i := range node.Status.Conditions {
		if node.Status.Conditions[i].Type == corev1.NodeReady {
			return node.Status.Conditions[i].Status == corev1.ConditionTrue
		}
	}
	return false
}

func podName(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }
