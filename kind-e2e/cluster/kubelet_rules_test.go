// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func list(pairs ...string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		l[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return l
}

// playedNode has 4 CPUs, 8 GiB and room for 3 pods.
func playedNode(change func(*corev1.Node)) *corev1.Node {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: "n", Labels: map[string]string{"zone": "a"}, Annotations: map[string]string{AnnotationNode: "fake"},
		},
		Status: corev1.NodeStatus{Allocatable: list("cpu", "4", "memory", "8Gi", "ephemeral-storage", "20Gi", "pods", "3")},
	}
	if change != nil {
		change(node)
	}
	return node
}

func boundPod(requests corev1.ResourceList, change func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", UID: "p"},
		Spec: corev1.PodSpec{
			NodeName:   "n",
			Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: requests}}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	if change != nil {
		change(pod)
	}
	return pod
}

func withPort(address string, port int32, protocol corev1.Protocol) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostIP: address, HostPort: port, Protocol: protocol}}
	}
}

func TestAdmit(t *testing.T) {
	t.Parallel()
	half := boundPod(list("cpu", "2", "memory", "4Gi"), nil)
	noExecute := corev1.Taint{Key: "karpenter.sh/unregistered", Effect: corev1.TaintEffectNoExecute}
	cases := map[string]struct {
		node       func(*corev1.Node)
		running    []*corev1.Pod
		pod        *corev1.Pod
		wantReason string
	}{
		"an empty node":               {pod: boundPod(list("cpu", "4", "memory", "8Gi"), nil)},
		"fits to the last milli":      {running: []*corev1.Pod{half}, pod: boundPod(list("cpu", "2000m"), nil)},
		"one milli too much":          {running: []*corev1.Pod{half}, pod: boundPod(list("cpu", "2001m"), nil), wantReason: "OutOfcpu"},
		"one byte too much":           {running: []*corev1.Pod{half}, pod: boundPod(list("memory", "4294967297"), nil), wantReason: "OutOfmemory"},
		"too much ephemeral storage":  {pod: boundPod(list("ephemeral-storage", "21Gi"), nil), wantReason: "OutOfephemeral-storage"},
		"too many pods":               {running: []*corev1.Pod{boundPod(nil, nil), boundPod(nil, nil), boundPod(nil, nil)}, pod: boundPod(nil, nil), wantReason: "OutOfpods"},
		"CPU is named before memory":  {pod: boundPod(list("cpu", "5", "memory", "9Gi"), nil), wantReason: "OutOfcpu"},
		"an extended resource":        {node: func(n *corev1.Node) { n.Status.Allocatable["nvidia.com/gpu"] = resource.MustParse("1") }, pod: boundPod(list("nvidia.com/gpu", "1"), nil)},
		"an extended resource in use": {node: func(n *corev1.Node) { n.Status.Allocatable["nvidia.com/gpu"] = resource.MustParse("1") }, running: []*corev1.Pod{boundPod(list("nvidia.com/gpu", "1"), nil)}, pod: boundPod(list("nvidia.com/gpu", "1"), nil), wantReason: "OutOfnvidia.com/gpu"},
		"an extended resource that the node lacks": {
			pod: boundPod(list("nvidia.com/gpu", "1"), nil), wantReason: "OutOfnvidia.com/gpu",
		},
		"a request of zero on an overfull node": {
			running: []*corev1.Pod{boundPod(list("cpu", "5"), nil)}, pod: boundPod(list("cpu", "0"), nil),
		},
		"an init container needs more than the containers": {
			pod: boundPod(list("cpu", "1"), func(p *corev1.Pod) {
				p.Spec.InitContainers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: list("cpu", "5")}}}
			}),
			wantReason: "OutOfcpu",
		},
		"overhead counts": {
			pod:        boundPod(list("cpu", "4"), func(p *corev1.Pod) { p.Spec.Overhead = list("cpu", "1m") }),
			wantReason: "OutOfcpu",
		},
		"the selector matches": {pod: boundPod(nil, func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"zone": "a"} })},
		"the selector does not match": {
			pod:        boundPod(nil, func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"zone": "b"} }),
			wantReason: "NodeAffinity",
		},
		"required affinity does not match": {
			pod: boundPod(nil, func(p *corev1.Pod) {
				p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
					RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
						NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
							{Key: "zone", Operator: corev1.NodeSelectorOpNotIn, Values: []string{"a"}},
						}}},
					},
				}}
			}),
			wantReason: "NodeAffinity",
		},
		"a NoExecute taint": {
			node: func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{noExecute} },
			pod:  boundPod(nil, nil), wantReason: "TaintToleration",
		},
		"a NoExecute taint, tolerated": {
			node: func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{noExecute} },
			pod: boundPod(nil, func(p *corev1.Pod) {
				p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
			}),
		},
		"a NoSchedule taint is the scheduler's business": {
			node: func(n *corev1.Node) {
				n.Spec.Taints = []corev1.Taint{{Key: "karpenter.sh/disrupted", Effect: corev1.TaintEffectNoSchedule}}
			},
			pod: boundPod(nil, nil),
		},
		"resources are named before taints": {
			node: func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{noExecute} },
			pod:  boundPod(list("cpu", "5"), nil), wantReason: "OutOfcpu",
		},
		"a free host port": {
			running: []*corev1.Pod{boundPod(nil, withPort("", 80, ""))}, pod: boundPod(nil, withPort("", 81, "")),
		},
		"a taken host port": {
			running:    []*corev1.Pod{boundPod(nil, withPort("10.0.0.1", 80, ""))},
			pod:        boundPod(nil, withPort("", 80, corev1.ProtocolTCP)),
			wantReason: "NodePorts",
		},
		"the same port of another protocol or address": {
			running: []*corev1.Pod{
				boundPod(nil, withPort("", 80, corev1.ProtocolUDP)), boundPod(nil, withPort("10.0.0.1", 80, "")),
			},
			pod: boundPod(nil, withPort("10.0.0.2", 80, "")),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := admit(playedNode(tc.node), tc.running, tc.pod)
			if got.reason != tc.wantReason {
				t.Errorf("got reason %q (%s), want %q", got.reason, got.message, tc.wantReason)
			}
			if !got.admitted() && got.message == "" {
				t.Error("a rejection without a message")
			}
		})
	}
}
