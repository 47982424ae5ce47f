// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
	schedulinghelper "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
)

// verdict is a kubelet's answer to a pod; the zero value admits it.
type verdict struct {
	// reason and message go into the status of a rejected pod.
	reason, message string
}

func (v verdict) admitted() bool { return v.reason == "" }

// admit checks what a kubelet checks when a pod reaches it, in its order: that
// its requests fit beside those of the running pods, the node affinity and
// selector, host ports, and NoExecute taints. Reasons are the kubelet's.
//
// One rule is stricter than the kubelet's: an extended resource that the node
// does not have counts as one of which there is nothing, because a pod with such
// a request should never have been bound.
func admit(node *corev1.Node, running []*corev1.Pod, pod *corev1.Pod) verdict {
	if v := admitResources(node.Status.Allocatable, running, pod); !v.admitted() {
		return v
	}
	if ok, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node); err != nil || !ok {
		return verdict{"NodeAffinity", "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"}
	}
	if port, taken := takenHostPort(running, pod); taken {
		return verdict{"NodePorts", fmt.Sprintf("Predicate NodePorts failed: host port %d is taken", port)}
	}
	taint, untolerated := schedulinghelper.FindMatchingUntoleratedTaint(klog.Background(),
		node.Spec.Taints, pod.Spec.Tolerations,
		func(t *corev1.Taint) bool { return t.Effect == corev1.TaintEffectNoExecute }, true)
	if untolerated {
		return verdict{"TaintToleration", "Predicate TaintToleration failed: untolerated taint " + taint.ToString()}
	}
	return verdict{}
}

func admitResources(allocatable corev1.ResourceList, running []*corev1.Pod, pod *corev1.Pod) verdict {
	used := corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(int64(len(running)), resource.DecimalSI)}
	for _, other := range running {
		for name, quantity := range resourcehelper.PodRequests(other, resourcehelper.PodResourcesOptions{}) {
			sum := used[name]
			sum.Add(quantity)
			used[name] = sum
		}
	}
	requests := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
	requests[corev1.ResourcePods] = *resource.NewQuantity(1, resource.DecimalSI)
	for _, name := range inKubeletOrder(requests) {
		request := requests[name]
		if request.IsZero() {
			continue // a pod that asks for nothing is not hurt by a full node
		}
		total := used[name].DeepCopy()
		total.Add(request)
		if capacity := allocatable[name]; total.Cmp(capacity) > 0 {
			inUse := used[name]
			return verdict{
				reason: "OutOf" + string(name),
				message: fmt.Sprintf("Node didn't have enough resource: %s, requested: %s, used: %s, capacity: %s",
					name, request.String(), inUse.String(), capacity.String()),
			}
		}
	}
	return verdict{}
}

// inKubeletOrder sorts resource names by which of several shortages the kubelet
// names.
func inKubeletOrder(requests corev1.ResourceList) []corev1.ResourceName {
	first := []corev1.ResourceName{
		corev1.ResourcePods, corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage,
	}
	rank := func(name corev1.ResourceName) int {
		if i := slices.Index(first, name); i >= 0 {
			return i
		}
		return len(first)
	}
	return slices.SortedFunc(maps.Keys(requests), func(a, b corev1.ResourceName) int {
		if c := rank(a) - rank(b); c != 0 {
			return c
		}
		return strings.Compare(string(a), string(b))
	})
}

// hostPort is what two pods of one node cannot both listen on.
type hostPort struct {
	port     int32
	protocol corev1.Protocol
}

// takenHostPort returns a host port of pod that a running pod listens on, on the
// same address or either on all addresses.
func takenHostPort(running []*corev1.Pod, pod *corev1.Pod) (int32, bool) {
	wanted := hostPorts(pod)
	if len(wanted) == 0 {
		return 0, false
	}
	for _, other := range running {
		for port, addresses := range hostPorts(other) {
			for _, a := range addresses {
				for _, b := range wanted[port] {
					if a == b || a == allAddresses || b == allAddresses {
						return port.port, true
					}
				}
			}
		}
	}
	return 0, false
}

const allAddresses = "0.0.0.0"

func hostPorts(pod *corev1.Pod) map[hostPort][]string {
	ports := map[hostPort][]string{}
	containers := slices.Clone(pod.Spec.Containers)
	for _, c := range pod.Spec.InitContainers {
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			containers = append(containers, c)
		}
	}
	for _, c := range containers {
		for _, p := range c.Ports {
			if p.HostPort == 0 {
				continue
			}
			address, protocol := p.HostIP, p.Protocol
			if address == "" {
				address = allAddresses
			}
			if protocol == "" {
				protocol = corev1.ProtocolTCP
			}
			key := hostPort{p.HostPort, protocol}
			ports[key] = append(ports[key], address)
		}
	}
	return ports
}
