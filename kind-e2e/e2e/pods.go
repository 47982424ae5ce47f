// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The schedulers of a cluster.
const (
	productScheduler = "jit-scheduler"
	defaultScheduler = "default-scheduler"
)

// pause is the image of all pods; nothing pulls it.
const pause = "public.ecr.aws/eks-distro/kubernetes/pause:3.7"

// podSpec is a pod that requests that much CPU.
func podSpec(scheduler, cpu string) corev1.PodSpec {
	now := int64(0)
	return corev1.PodSpec{
		SchedulerName:                 scheduler,
		TerminationGracePeriodSeconds: &now,
		Containers: []corev1.Container{{
			Name: "main", Image: pause,
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}},
		}},
	}
}

// Pod makes a pod of the product that has the app label; edits change it.
func (t *Trial) Pod(app, name, cpu string, edits ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: t.Namespace, Name: name, Labels: map[string]string{"app": app}},
		Spec:       podSpec(productScheduler, cpu),
	}
	for _, edit := range edits {
		edit(pod)
	}
	return pod
}

// byDefaultScheduler leaves the pod to the cluster's default scheduler.
func byDefaultScheduler(pod *corev1.Pod) { pod.Spec.SchedulerName = defaultScheduler }

// alone keeps pods with the same app label off its machine.
func alone(pod *corev1.Pod) {
	pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey:   corev1.LabelHostname,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": pod.Labels["app"]}},
		}},
	}}
}

// onPool restricts the pod to machines of that NodePool.
func onPool(name string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.NodeSelector = map[string]string{"karpenter.sh/nodepool": name} }
}

// onNode pins the pod to one node by its name, as the DaemonSet controller does.
func onNode(name string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{name}}},
			}}},
		}}
	}
}

// Create creates pods, all at once.
func (e *Env) Create(ctx context.Context, pods ...*corev1.Pod) error {
	errs := make([]error, len(pods))
	slots := make(chan struct{}, 16)
	var wg sync.WaitGroup
	for i, pod := range pods {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			if _, err := e.Kube.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
				errs[i] = fmt.Errorf("creating pod %s: %w", pod.Name, err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Delete deletes pods.
func (t *Trial) Delete(ctx context.Context, names ...string) error {
	var errs []error
	for _, name := range names {
		errs = append(errs, t.Kube.CoreV1().Pods(t.Namespace).Delete(ctx, name, metav1.DeleteOptions{}))
	}
	return errors.Join(errs...)
}

// Series makes n pods called app-0, app-1…
func (t *Trial) Series(app string, n int, cpu string, edits ...func(*corev1.Pod)) []*corev1.Pod {
	var pods []*corev1.Pod
	for i := range n {
		pods = append(pods, t.Pod(app, fmt.Sprintf("%s-%d", app, i), cpu, edits...))
	}
	return pods
}
