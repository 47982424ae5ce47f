// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// extender keeps planned nodes from an extender, which would look them up in the API server or bind pods to them. Our
// Filter refuses them before; this holds even if an extender comes by another way.
type extender struct {
	fwk.Extender

	adapter *Adapter
}

func (e *extender) real(nodes []fwk.NodeInfo) []fwk.NodeInfo {
	planned := func(n fwk.NodeInfo) bool { return e.adapter.isPlanned(n.Node().Name) }
	if !slices.ContainsFunc(nodes, planned) {
		return nodes
	}
	return slices.DeleteFunc(slices.Clone(nodes), planned)
}

// Filter implements fwk.Extender.
func (e *extender) Filter(pod *v1.Pod, nodes []fwk.NodeInfo) ([]fwk.NodeInfo, extenderv1.FailedNodesMap, extenderv1.FailedNodesMap, error) {
	return e.Extender.Filter(pod, e.real(nodes))
}

// Prioritize implements fwk.Extender.
func (e *extender) Prioritize(pod *v1.Pod, nodes []fwk.NodeInfo) (*extenderv1.HostPriorityList, int64, error) {
	return e.Extender.Prioritize(pod, e.real(nodes))
}

// Bind implements fwk.Extender.
func (e *extender) Bind(b *v1.Binding) error {
	if e.adapter.isPlanned(b.Target.Name) {
		return fmt.Errorf("binding pod %s/%s: node %s is planned only", b.Namespace, b.Name, b.Target.Name)
	}
	return e.Extender.Bind(b)
}
