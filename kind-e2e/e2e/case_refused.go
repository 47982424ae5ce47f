// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/judge"
)

var refusedCase = Case{
	Name:  "refused",
	About: "too big, no PVC, pool at its limit, class not ready, DaemonSet pod, pinned by name: nothing is bought, an event says why",
	Run:   runRefused,
}

// refusal is a pod that no new machine can help, and what an event about it must say.
type refusal struct {
	pod    *corev1.Pod
	reason string
	says   []string
}

func runRefused(ctx context.Context, t *Trial) error {
	if err := t.Start(ctx); err != nil {
		return err
	}
	if err := t.hopelessPools(ctx); err != nil {
		return err
	}
	// A node that exists, and that the pinned pods do not fit.
	if err := t.AddNode(ctx, "small", "2"); err != nil {
		return err
	}
	refusals := []refusal{
		{t.Pod("refused", "too-big", "1000"), "NoInstanceTypeFits", []string{"1000 cpu", "largest"}},
		{t.Pod("refused", "no-pvc", "1", mounting("absent")), "NotNodeRelated", []string{"absent"}},
		{t.Pod("refused", "at-limit", "2", onPool("limited")), "NodePoolLimitReached", []string{"limited", "limit of 1 cpu", "0 in use"}},
		{t.Pod("refused", "not-ready", "1", onPool("unready")), "NodePoolNotReady", []string{"unready"}},
		{t.Pod("refused", "pinned", "4", onNode("small")), "NotNodeRelated", []string{"node small", "metadata.name"}},
		{t.Pod("refused", "pinned-nowhere", "1", onNode("nowhere")), "NotNodeRelated", []string{"node nowhere", "metadata.name"}},
	}
	var pods []*corev1.Pod
	for _, r := range refusals {
		pods = append(pods, r.pod)
	}
	if err := t.Create(ctx, pods...); err != nil {
		return err
	}
	if err := t.daemonSet(ctx, "daemon", "4"); err != nil {
		return err
	}
	if err := t.Wait(ctx, settleTimeout, func(v *judge.View) string { return t.unexplained(v, refusals) }); err != nil {
		return err
	}
	// Long enough for a second look at all of them.
	return t.Stays(ctx, 5*time.Second, nothingLaunched)
}

// hopelessPools are one that could buy, one that may not, and one that cannot.
func (t *Trial) hopelessPools(ctx context.Context) error {
	if err := t.Buyable(ctx); err != nil {
		return err
	}
	if err := t.NodePool(ctx, "limited", change{"spec.limits.cpu", "1"}); err != nil {
		return err
	}
	nothing := []any{map[string]any{"tags": map[string]any{"no-such": "tag"}}}
	if err := t.NodeClass(ctx, "unready", change{"spec.subnetSelectorTerms", nothing}); err != nil {
		return err
	}
	return t.NodePool(ctx, "unready", change{"spec.template.spec.nodeClassRef.name", "unready"})
}

// unexplained is the first refusal that no event tells.
func (t *Trial) unexplained(v *judge.View, refusals []refusal) string {
	for _, r := range refusals {
		if !v.HasEvent("Pod", t.Namespace, r.pod.Name, r.reason, r.says...) {
			return fmt.Sprintf("no event %s with %q about %s, only %q", r.reason, r.says, r.pod.Name, v.Events("Pod", t.Namespace, r.pod.Name))
		}
	}
	daemons := v.Select(t.App("daemon"))
	if len(daemons) == 0 {
		return "the DaemonSet has no pod"
	}
	name := daemons[0].Name
	if !v.HasEvent("Pod", t.Namespace, name, "NotNodeRelated", "DaemonSet daemon", "node small") {
		return fmt.Sprintf("no event NotNodeRelated about a DaemonSet's pod, only %q", v.Events("Pod", t.Namespace, name))
	}
	return ""
}

// mounting gives the pod a volume.
func mounting(claim string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
		}})
	}
}

// daemonSet makes a DaemonSet of the product, whose pods have its name as their app label.
func (t *Trial) daemonSet(ctx context.Context, name, cpu string) error {
	labels := map[string]string{"app": name}
	spec := podSpec(productScheduler, cpu)
	spec.TerminationGracePeriodSeconds = nil
	_, err := t.Kube.AppsV1().DaemonSets(t.Namespace).Create(ctx, &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec},
		},
	}, metav1.CreateOptions{})
	return err
}
