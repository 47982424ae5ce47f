// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// podKey names one pod, and not a later one of the same name: KWOK's own way to
// remove pods does not tell them apart, and may remove a StatefulSet's new pod.
type podKey struct {
	namespace, name string
	uid             types.UID
}

func keyOf(pod *corev1.Pod) podKey { return podKey{pod.Namespace, pod.Name, pod.UID} }

// removeAt is when the containers of a pod that is being deleted have ended.
func removeAt(pod *corev1.Pod) time.Time {
	if _, ignores := pod.Annotations[AnnotationIgnoresSIGTERM]; ignores && !isTerminal(pod) {
		return pod.DeletionTimestamp.Time // the end of the grace period
	}
	return time.Time{}
}

// removePod removes a deleted pod from the API, as a kubelet does once the pod's
// containers have ended.
func (k *kubelets) removePod(ctx context.Context, key podKey) error {
	obj, exists, err := k.pods.GetByKey(key.namespace + "/" + key.name)
	if err != nil || !exists {
		return err
	}
	pod := obj.(*corev1.Pod)
	if pod.UID != key.uid || k.playedNode(pod.Spec.NodeName) == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, kubeletDeadline)
	defer cancel()
	now := int64(0)
	err = k.client.CoreV1().Pods(key.namespace).Delete(ctx, key.name, metav1.DeleteOptions{
		GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &key.uid},
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // it has gone already
	}
	return err
}
