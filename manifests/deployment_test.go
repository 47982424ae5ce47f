// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

const deploymentFile = "base/deployment.yaml"

// TestPodSecurity holds the pod to the restricted Pod Security Standard, and a read-only root beyond it.
func TestPodSecurity(t *testing.T) {
	t.Parallel()
	pod := only[*appsv1.Deployment](t, deploymentFile).Spec.Template.Spec
	if pod.HostNetwork || pod.HostPID || pod.HostIPC {
		t.Error("the pod shares a namespace of its host")
	}
	want := &v1.PodSecurityContext{
		RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To[int64](65532), RunAsGroup: ptr.To[int64](65532), FSGroup: ptr.To[int64](65532),
		SeccompProfile: &v1.SeccompProfile{Type: v1.SeccompProfileTypeRuntimeDefault},
	}
	if diff := cmp.Diff(want, pod.SecurityContext); diff != "" {
		t.Errorf("pod security context (-want +got):\n%s", diff)
	}
	wantContainer := &v1.SecurityContext{
		AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true),
		Capabilities: &v1.Capabilities{Drop: []v1.Capability{"ALL"}},
	}
	for _, container := range pod.Containers {
		if diff := cmp.Diff(wantContainer, container.SecurityContext); diff != "" {
			t.Errorf("security context of %s (-want +got):\n%s", container.Name, diff)
		}
	}
	for _, volume := range pod.Volumes {
		if volume.ConfigMap == nil {
			t.Errorf("volume %s is no ConfigMap", volume.Name)
		}
	}
}

// TestAvailability: two replicas, apart, that neither wait for themselves nor sit on what they may remove.
func TestAvailability(t *testing.T) {
	t.Parallel()
	deployment := only[*appsv1.Deployment](t, deploymentFile)
	pod := deployment.Spec.Template.Spec
	if got := ptr.Deref(deployment.Spec.Replicas, 1); got != 2 {
		t.Errorf("replicas = %d, want 2", got)
	}
	if pod.SchedulerName != v1.DefaultSchedulerName || pod.PriorityClassName != "system-cluster-critical" {
		t.Errorf("scheduled by %q as %q", pod.SchedulerName, pod.PriorityClassName)
	}
	resources := pod.Containers[0].Resources
	if diff := cmp.Diff(resources.Limits, resources.Requests); diff != "" {
		t.Errorf("requests are not limits:\n%s", diff)
	}
	if cpu, memory := resources.Limits.Cpu().String(), resources.Limits.Memory().String(); cpu != "1" || memory != "1Gi" {
		t.Errorf("limits = %s CPU, %s memory, want 1, 1Gi", cpu, memory)
	}
	wantTerms := []v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{{Key: karpv1.NodePoolLabelKey, Operator: v1.NodeSelectorOpDoesNotExist}}}}
	if diff := cmp.Diff(wantTerms, pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms); diff != "" {
		t.Errorf("node affinity (-want +got):\n%s", diff)
	}
	apart := pod.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if len(apart) != 1 || apart[0].TopologyKey != v1.LabelHostname {
		t.Errorf("anti-affinity = %v, want one by hostname", apart)
	}
	if spread := pod.TopologySpreadConstraints; len(spread) != 1 || spread[0].TopologyKey != v1.LabelTopologyZone {
		t.Errorf("spread = %v, want one by zone", spread)
	}
}

// TestSelectors: Deployment, anti-affinity, spread, Service and PodDisruptionBudget all mean the same pods.
func TestSelectors(t *testing.T) {
	t.Parallel()
	deployment := only[*appsv1.Deployment](t, deploymentFile)
	pod := deployment.Spec.Template
	budget := only[*policyv1.PodDisruptionBudget](t, "base/poddisruptionbudget.yaml")
	service := only[*v1.Service](t, "base/service.yaml")
	selectors := map[string]*metav1.LabelSelector{
		"Deployment":          deployment.Spec.Selector,
		"anti-affinity":       pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].LabelSelector,
		"spread":              pod.Spec.TopologySpreadConstraints[0].LabelSelector,
		"PodDisruptionBudget": budget.Spec.Selector,
		"Service":             {MatchLabels: service.Spec.Selector},
	}
	for name, labelSelector := range selectors {
		selector, err := metav1.LabelSelectorAsSelector(labelSelector)
		if err != nil || selector.Empty() || !selector.Matches(labels.Set(pod.Labels)) {
			t.Errorf("%s selects %v, which the pod's labels %v do not match (%v)", name, selector, pod.Labels, err)
		}
	}
	if got := budget.Spec.MaxUnavailable; got == nil || *got != intstr.FromInt32(1) {
		t.Errorf("maxUnavailable = %v, want 1", got)
	}
}

// TestProbes: all three, over TLS, on a port that the container has.
func TestProbes(t *testing.T) {
	t.Parallel()
	container := only[*appsv1.Deployment](t, deploymentFile).Spec.Template.Spec.Containers[0]
	ports := map[string]bool{}
	for _, port := range container.Ports {
		ports[port.Name] = true
	}
	probes := map[string]*v1.Probe{"startup": container.StartupProbe, "liveness": container.LivenessProbe, "readiness": container.ReadinessProbe}
	for name, probe := range probes {
		if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Scheme != v1.URISchemeHTTPS || !ports[probe.HTTPGet.Port.StrVal] {
			t.Errorf("%s probe = %v, want HTTPS on one of %v", name, probe, ports)
		}
	}
}
