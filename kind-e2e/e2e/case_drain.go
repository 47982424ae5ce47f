// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/judge"
)

var drainCase = Case{
	Name:  "drain",
	About: "deleting NodeClaim or Node moves the pods by eviction, within their PodDisruptionBudget, and ends the machine",
	Run:   runDrain,
}

func runDrain(ctx context.Context, t *Trial) error {
	if err := t.Start(ctx); err != nil {
		return err
	}
	if err := t.Buyable(ctx); err != nil {
		return err
	}
	if err := t.guarded(ctx, "moved", 2); err != nil {
		return err
	}
	if err := t.WaitBound(ctx, "moved", 2, time.Minute); err != nil {
		return err
	}
	for _, what := range []string{"nodeclaim", "node"} {
		before := t.Judge.View()
		for name, claim := range before.Claims {
			if what == "node" {
				name = claim.Status.NodeName
			}
			if err := t.kubectl(ctx, "delete", what, name, "--wait=false"); err != nil {
				return err
			}
		}
		if err := t.Wait(ctx, 90*time.Second, func(v *judge.View) string { return t.notMoved(v, before) }); err != nil {
			return fmt.Errorf("after deleting the %s: %w", what, err)
		}
	}
	return nil
}

// guarded makes a Deployment of which at most one pod may be missing.
func (t *Trial) guarded(ctx context.Context, app string, replicas int32) error {
	labels := map[string]string{"app": app}
	one := intstr.FromInt32(1)
	selector := &metav1.LabelSelector{MatchLabels: labels}
	_, err := t.Kube.PolicyV1().PodDisruptionBudgets(t.Namespace).Create(ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: app}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: selector, MaxUnavailable: &one},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	_, err = t.Kube.AppsV1().Deployments(t.Namespace).Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: app},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: selector,
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec(productScheduler, "1")},
		},
	}, metav1.CreateOptions{})
	return err
}

// notMoved says what is left of the machines that there were, or which pods have no new one yet.
func (t *Trial) notMoved(v, before *judge.View) string {
	for name := range before.Claims {
		if v.Claims[name] != nil {
			return fmt.Sprintf("NodeClaim %s is still there", name)
		}
	}
	for _, old := range before.LiveInstances() {
		for _, now := range v.LiveInstances() {
			if now.ID == old.ID {
				return fmt.Sprintf("instance %s is %s", now.ID, now.State)
			}
		}
	}
	if n := v.Count(t.App("moved")); n.Ready != 2 || n.Total != 2 {
		return fmt.Sprintf("%d of %d pods run, wanted 2", n.Ready, n.Total)
	}
	return ""
}
