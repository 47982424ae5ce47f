// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/cluster"
	"github.com/jit-scheduler/jit-scheduler/kind-e2e/judge"
)

// AddNode makes a Node that nobody launched, as a node group of the user has them, and waits until it takes pods.
func (t *Trial) AddNode(ctx context.Context, name, cpu string) error {
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("1Ti"), corev1.ResourcePods: resource.MustParse("1000"),
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Annotations: map[string]string{cluster.AnnotationNode: "fake"},
			Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64"},
		},
		Status: corev1.NodeStatus{
			Capacity: room, Allocatable: room,
			Conditions: []corev1.NodeCondition{{
				Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: "kubelet is posting ready status",
				LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
			}},
		},
	}
	if _, err := t.Kube.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("making node %s: %w", name, err)
	}
	return t.Wait(ctx, settleTimeout, func(v *judge.View) string {
		if n := v.Nodes[name]; n == nil || len(n.Spec.Taints) > 0 {
			return "node " + name + " is not there, or tainted"
		}
		return ""
	})
}
