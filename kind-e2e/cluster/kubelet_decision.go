// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"fmt"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
)

// kubeletWrites is how many decisions on one node's pods are written at a time.
const kubeletWrites = 16

// decision is a verdict that stands, and whether the API server has it.
type decision struct {
	verdict
	written bool
}

// decisionOn returns what was decided about a pod that has not ended.
func (k *kubelets) decisionOn(pod *corev1.Pod) (decision, bool) {
	if !isUndecided(pod) {
		return decision{written: true}, true
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	d, ok := k.decided[pod.UID]
	return d, ok
}

func (k *kubelets) decide(pod *corev1.Pod, d decision) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.decided[pod.UID] = d
}

// writeAll writes the decisions on pods, many at a time: a kubelet admits without
// a request to the API, and should not be made slow by ours.
func (k *kubelets) writeAll(ctx context.Context, pods []*corev1.Pod) error {
	var group errgroup.Group
	group.SetLimit(kubeletWrites)
	for _, pod := range pods {
		group.Go(func() error {
			d, _ := k.decisionOn(pod)
			if err := k.write(ctx, pod, d.verdict); err != nil {
				return fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, err)
			}
			k.decide(pod, decision{verdict: d.verdict, written: true})
			return nil
		})
	}
	return group.Wait()
}

// write makes the verdict known: to KWOK if the pod may run, else to all.
func (k *kubelets) write(ctx context.Context, pod *corev1.Pod, v verdict) error {
	ctx, cancel := context.WithTimeout(ctx, kubeletDeadline)
	defer cancel()
	// The UID makes a pod of the same name that came since a conflict.
	patch := map[string]any{"metadata": map[string]any{"uid": pod.UID}}
	var subresources []string
	if v.admitted() {
		patch["metadata"].(map[string]any)["annotations"] = map[string]string{AnnotationAdmitted: "true"}
	} else {
		subresources = []string{"status"}
		patch["status"] = map[string]any{
			"phase": corev1.PodFailed, "reason": v.reason, "message": "Pod was rejected: " + v.message,
			"startTime": metav1.Now(),
		}
		klog.FromContext(ctx).Info("Pod rejected as a kubelet would",
			"pod", klog.KObj(pod), "node", pod.Spec.NodeName, "reason", v.reason, "detail", v.message)
	}
	data, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	_, err = k.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, data,
		metav1.PatchOptions{}, subresources...)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // the pod has gone
	}
	return err
}
