// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corehelpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/jit-scheduler/jit-scheduler/provisioner/lifecycle"
)

// drain evicts the first tier of pods that is left on a node and says how many pods it still waits for. The tiers are
// Karpenter's: workloads before DaemonSets, critical ones last; the next starts when the former is gone.
func (p *Provisioner) drain(ctx context.Context, a lifecycle.Drain) ([]lifecycle.Event, error) {
	tiers := [4][]*v1.Pod{}
	remaining := 0
	for _, pod := range p.podsOf(byNode, a.Node) {
		if !drainable(pod) {
			continue
		}
		remaining++
		tiers[tier(pod)] = append(tiers[tier(pod)], pod)
	}
	for _, pods := range tiers {
		if len(pods) == 0 {
			continue
		}
		refused := false
		for _, pod := range pods {
			if err := p.evict(ctx, pod, a); err != nil {
				klog.FromContext(ctx).V(2).Info("Evicting", "pod", klog.KObj(pod), "err", err)
				refused = true
			}
		}
		if refused {
			p.Recorder.Eventf(nodeRef(a.Node), nil, v1.EventTypeWarning, "FailedDraining", "Draining",
				"Failed to drain node, %d pods are waiting to be evicted", remaining)
		}
		break
	}
	return []lifecycle.Event{lifecycle.Done{Key: a.Key()}, lifecycle.Drained{Node: a.Node, Remaining: remaining}}, nil
}

// stuckAfter is how long past its own deletion time a pod is waited for: its kubelet is gone.
const stuckAfter = time.Minute

// drainable is true for pods that are waited for.
func drainable(pod *v1.Pod) bool {
	if pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed {
		return false
	}
	if _, mirror := pod.Annotations[v1.MirrorPodAnnotationKey]; mirror {
		return false
	}
	if pod.DeletionTimestamp != nil && time.Since(pod.DeletionTimestamp.Time) > stuckAfter {
		return false
	}
	return !corehelpers.TolerationsTolerateTaint(klog.Background(), pod.Spec.Tolerations, &disrupted, true)
}

func tier(pod *v1.Pod) int {
	t := 0
	if isDaemon(pod) {
		t = 1
	}
	if c := pod.Spec.PriorityClassName; c == "system-cluster-critical" || c == "system-node-critical" {
		t += 2
	}
	return t
}

// evict asks through the Eviction API, so that disruption budgets hold; past the deadline it deletes.
func (p *Provisioner) evict(ctx context.Context, pod *v1.Pod, a lifecycle.Drain) error {
	forced := a.Deadline > 0 && time.Now().Unix()+grace(pod) >= a.Deadline
	if pod.DeletionTimestamp != nil && (!forced || pod.DeletionTimestamp.Unix() <= a.Deadline) {
		return nil // it ends in time
	}
	if !forced && pod.Annotations[karpv1.DoNotDisruptAnnotationKey] == "true" {
		return nil
	}
	if err := p.Leading(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	opts := &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}}
	var err error
	if forced {
		left := max(1, a.Deadline-time.Now().Unix())
		opts.GracePeriodSeconds = &left
		err = p.Client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, *opts)
	} else {
		err = p.Client.PolicyV1().Evictions(pod.Namespace).Evict(ctx, &policyv1.Eviction{
			ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}, DeleteOptions: opts,
		})
	}
	switch {
	case err == nil:
		p.Recorder.Eventf(pod, nil, v1.EventTypeNormal, "Evicted", "Draining", "Evicted pod: node %s is being removed", a.Node)
		return nil
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return nil
	}
	return fmt.Errorf("evicting: %w", err)
}

func grace(pod *v1.Pod) int64 {
	if pod.Spec.TerminationGracePeriodSeconds != nil {
		return *pod.Spec.TerminationGracePeriodSeconds
	}
	return v1.DefaultTerminationGracePeriodSeconds
}
