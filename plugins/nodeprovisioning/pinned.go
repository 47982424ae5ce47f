// SPDX-License-Identifier: Apache-2.0

package nodeprovisioning

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pinned says in words what pins the pod to nodes by name, "" if nothing does.
func pinned(pod *v1.Pod) string {
	names := pinnedTo(pod)
	if len(names) == 0 {
		return ""
	}
	if ref := metav1.GetControllerOfNoCopy(pod); ref != nil && ref.Kind == "DaemonSet" {
		return fmt.Sprintf("the pod of DaemonSet %s is for node %s only", ref.Name, strings.Join(names, ", "))
	}
	return fmt.Sprintf("the pod's node affinity pins it to node %s by metadata.name", strings.Join(names, ", "))
}

// pinnedTo are the node names of the required node affinity, nil if any of its terms is free of them.
func pinnedTo(pod *v1.Pod) []string {
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.NodeAffinity == nil ||
		pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return nil
	}
	var names []string
	for _, term := range pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		pinned := false
		for _, f := range term.MatchFields {
			if f.Key == metav1.ObjectNameField && f.Operator == v1.NodeSelectorOpIn {
				names, pinned = append(names, f.Values...), true
			}
		}
		if !pinned {
			return nil
		}
	}
	return names
}
