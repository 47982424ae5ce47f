// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// The resources that cases make, users before what they use.
var (
	gvrNodePools   = schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodepools"}
	gvrNodeClasses = schema.GroupVersionResource{Group: "karpenter.k8s.aws", Version: "v1", Resource: "ec2nodeclasses"}
	gvrNodeClaims  = schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodeclaims"}
	gvrNodes       = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	gvrPods        = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	gvrPVCs        = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	workloads      = []schema.GroupVersionResource{
		{Group: "apps", Version: "v1", Resource: "deployments"},
		{Group: "apps", Version: "v1", Resource: "statefulsets"},
		{Group: "apps", Version: "v1", Resource: "daemonsets"},
		{Group: "apps", Version: "v1", Resource: "replicasets"},
	}
)

// end ends the programs of a case and removes its objects by force: nobody is there any more to finalize them.
func (t *Trial) end(ctx context.Context) error {
	var errs []error
	for _, do := range slices.Backward(t.tidy) {
		errs = append(errs, do(ctx))
	}
	errs = append(errs, t.unwatch())
	for _, ns := range []string{t.Namespace, "default"} {
		for _, gvr := range workloads {
			errs = append(errs, t.deleteAll(ctx, gvr, ns, false))
		}
	}
	errs = append(errs, poll(ctx, time.Minute, t.podsLeft))
	for _, gvr := range []schema.GroupVersionResource{gvrNodeClaims, gvrNodes, gvrNodePools, gvrNodeClasses} {
		errs = append(errs, t.deleteAll(ctx, gvr, "", true))
	}
	errs = append(errs, t.deleteAll(ctx, gvrPVCs, t.Namespace, true), t.dropLease(ctx),
		t.Kube.CoreV1().Namespaces().Delete(ctx, t.Namespace, metav1.DeleteOptions{}))
	return errors.Join(errs...)
}

// podsLeft deletes pods at once and says how many were there.
func (t *Trial) podsLeft(ctx context.Context) (string, error) {
	left := 0
	for _, ns := range []string{t.Namespace, "default"} {
		list, err := t.Kube.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return "", err
		}
		if left += len(list.Items); len(list.Items) == 0 {
			continue
		}
		if err := t.deleteAll(ctx, gvrPods, ns, false); err != nil {
			return "", err
		}
	}
	if left > 0 {
		return fmt.Sprintf("%d pods are left", left), nil
	}
	return "", nil
}

// deleteAll deletes all objects of a kind in a namespace, if it has one; with strip, their finalizers first.
func (t *Trial) deleteAll(ctx context.Context, gvr schema.GroupVersionResource, namespace string, strip bool) error {
	client := t.Dynamic.Resource(gvr).Namespace(namespace)
	if !strip {
		now, background := int64(0), metav1.DeletePropagationBackground
		return client.DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &now, PropagationPolicy: &background}, metav1.ListOptions{})
	}
	list, err := client.List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil
	}
	if err != nil {
		return err
	}
	var errs []error
	for i := range list.Items {
		name := list.Items[i].GetName()
		_, err := client.Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		if err == nil {
			err = client.Delete(ctx, name, metav1.DeleteOptions{})
		}
		if err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// dropLease ends the leadership of a replica that is gone, which would have to expire otherwise.
func (t *Trial) dropLease(ctx context.Context) error {
	err := t.Kube.CoordinationV1().Leases(productNamespace).Delete(ctx, "jit-scheduler", metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
