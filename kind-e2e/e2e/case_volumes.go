// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/judge"
)

var volumesCase = Case{
	Name:  "volumes",
	About: "a StatefulSet whose volumes wait for their first consumer gets machines and binds; selected-node never names a NodeClaim",
	Run:   runVolumes,
}

const (
	diskClass       = "e2e-disk"
	diskProvisioner = "e2e.jit-scheduler.io/disk"
	selectedNode    = "volume.kubernetes.io/selected-node"
)

func runVolumes(ctx context.Context, t *Trial) error {
	if err := t.Start(ctx); err != nil {
		return err
	}
	if err := t.Buyable(ctx); err != nil {
		return err
	}
	provisioning, stop := context.WithCancel(ctx)
	failed := make(chan error, 1)
	go func() { failed <- t.provisionDisks(provisioning) }()
	t.Cleanup(func(ctx context.Context) error {
		stop()
		return errors.Join(<-failed, t.deleteAll(ctx, gvrPVCs, t.Namespace, true),
			t.deleteAll(ctx, schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumes"}, "", true),
			t.Kube.StorageV1().StorageClasses().Delete(ctx, diskClass, metav1.DeleteOptions{}))
	})
	wait := storagev1.VolumeBindingWaitForFirstConsumer
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: diskClass}, Provisioner: diskProvisioner, VolumeBindingMode: &wait}
	if _, err := t.Kube.StorageV1().StorageClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil {
		return err
	}
	if err := t.statefulSet(ctx, "stateful", 3); err != nil {
		return err
	}
	if err := t.WaitBound(ctx, "stateful", 3, 90*time.Second); err != nil {
		return err
	}
	return t.Wait(ctx, settleTimeout, func(v *judge.View) string {
		if n := v.Count(t.App("stateful")); n.Ready != 3 {
			return fmt.Sprintf("%d pods run, wanted 3", n.Ready)
		}
		return ""
	})
}

// statefulSet makes a StatefulSet of pods that each have a disk.
func (t *Trial) statefulSet(ctx context.Context, name string, replicas int32) error {
	labels := map[string]string{"app": name}
	spec := podSpec(productScheduler, "1")
	class := diskClass
	_, err := t.Kube.AppsV1().StatefulSets(t.Namespace).Create(ctx, &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &replicas, ServiceName: name, PodManagementPolicy: appsv1.ParallelPodManagement,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{
				ObjectMeta: metav1.ObjectMeta{Name: "data"},
				Spec: corev1.PersistentVolumeClaimSpec{
					StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
					Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
				},
			}},
		},
	}, metav1.CreateOptions{})
	return err
}

// provisionDisks makes the volume of every claim for which a scheduler has chosen a node, in the zone of that node, as a
// CSI driver's provisioner does, until ctx ends.
func (t *Trial) provisionDisks(ctx context.Context) error {
	for {
		claims, err := t.Kube.CoreV1().PersistentVolumeClaims(t.Namespace).List(ctx, metav1.ListOptions{})
		if err == nil {
			for i := range claims.Items {
				if claims.Items[i].Annotations[selectedNode] != "" && claims.Items[i].Spec.VolumeName == "" {
					err = errors.Join(err, t.provisionDisk(ctx, &claims.Items[i]))
				}
			}
		}
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (t *Trial) provisionDisk(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	node, err := t.Kube.CoreV1().Nodes().Get(ctx, claim.Annotations[selectedNode], metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil // the judge has its own opinion of that
	}
	if err != nil {
		return err
	}
	zone := node.Labels[corev1.LabelTopologyZone]
	_, err = t.Kube.CoreV1().PersistentVolumes().Create(ctx, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name: "disk-" + string(claim.UID), Annotations: map[string]string{"pv.kubernetes.io/provisioned-by": diskProvisioner},
		},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName: diskClass, AccessModes: claim.Spec.AccessModes, Capacity: claim.Spec.Resources.Requests,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			ClaimRef:                      &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID},
			PersistentVolumeSource:        corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/disk"}},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}},
			}}}},
		},
	}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
