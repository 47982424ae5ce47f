// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/judge"
)

var heldRoomCase = Case{
	Name:  "held-room",
	About: "while a machine is held for its pods, the default scheduler's pods stay off it and DaemonSet pods start on it",
	Run:   runHeldRoom,
}

// agentTaint is a startup taint that a DaemonSet's pod has to remove: as long as it is there, so is the hold.
const agentTaint = "e2e.jit-scheduler.io/agent"

func runHeldRoom(ctx context.Context, t *Trial) error {
	if err := t.Start(ctx); err != nil {
		return err
	}
	taints := []any{map[string]any{"key": agentTaint, "effect": "NoSchedule"}}
	if err := t.Buyable(ctx, change{"spec.template.spec.startupTaints", taints}); err != nil {
		return err
	}
	if err := t.agents(ctx); err != nil {
		return err
	}
	// They would take any room there is, but for the hold.
	greedy := t.Series("greedy", 20, "500m", byDefaultScheduler, toleratingAgent)
	if err := t.Create(ctx, append(greedy, t.Series("ours", 6, "1")...)...); err != nil {
		return err
	}
	if err := t.Wait(ctx, time.Minute, t.agentMissing); err != nil {
		return err
	}
	if err := t.Stays(ctx, 3*time.Second, t.holdBroken); err != nil {
		return err
	}
	if err := t.removeAgentTaint(ctx); err != nil {
		return err
	}
	return t.WaitBound(ctx, "ours", 6, settleTimeout)
}

func toleratingAgent(pod *corev1.Pod) {
	pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{Key: agentTaint, Operator: corev1.TolerationOpExists})
}

// agents makes the DaemonSet, as users have them: of the default scheduler.
func (t *Trial) agents(ctx context.Context) error {
	labels := map[string]string{"app": "agent"}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec(defaultScheduler, "100m")}
	template.Spec.Tolerations = []corev1.Toleration{{Key: agentTaint, Operator: corev1.TolerationOpExists}}
	_, err := t.Kube.AppsV1().DaemonSets(t.Namespace).Create(ctx, &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "agent"},
		Spec:       appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: template},
	}, metav1.CreateOptions{})
	return err
}

// agentMissing says on which machine no agent runs yet.
func (t *Trial) agentMissing(v *judge.View) string {
	agents := v.Count(t.App("agent"))
	if n := v.ReadyNodes(true); n == 0 || agents.Ready < n || n < len(v.Claims) {
		return fmt.Sprintf("%d agents run on %d ready machines of %d", agents.Ready, n, len(v.Claims))
	}
	return ""
}

// holdBroken says who is where nobody should be yet.
func (t *Trial) holdBroken(v *judge.View) string {
	if n := v.Count(t.App("greedy")); n.Bound > 0 {
		return fmt.Sprintf("%d pods of the default scheduler are on held machines", n.Bound)
	}
	if n := v.Count(t.App("ours")); n.Bound > 0 {
		return fmt.Sprintf("%d pods were bound before the startup taint went", n.Bound)
	}
	for name, node := range v.Nodes {
		if node.Annotations["jit-scheduler.io/hold"] == "" || !node.Spec.Unschedulable {
			return fmt.Sprintf("%s is not held", name)
		}
	}
	return ""
}

// removeAgentTaint does on every node what the agent is for.
func (t *Trial) removeAgentTaint(ctx context.Context) error {
	nodes, err := t.Kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range nodes.Items {
		node := &nodes.Items[i]
		kept := []corev1.Taint{}
		for _, taint := range node.Spec.Taints {
			if taint.Key != agentTaint {
				kept = append(kept, taint)
			}
		}
		patch, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"resourceVersion": node.ResourceVersion}, "spec": map[string]any{"taints": kept},
		})
		if err != nil {
			return err
		}
		if _, err := t.Kube.CoreV1().Nodes().Patch(ctx, node.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return err
		}
	}
	return nil
}
