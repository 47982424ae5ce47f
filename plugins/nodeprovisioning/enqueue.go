// SPDX-License-Identifier: Apache-2.0

package nodeprovisioning

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
)

// EventsToRegister lists what can undo a refusal of Filter. What the ledger changes (closed nodes, pairings, plans)
// wakes its pods by Activate. Hints run under the queue's lock: they must not ask the provisioner.
func (pl *Plugin) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{
		{Event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add | fwk.UpdateNodeTaint}, QueueingHintFn: afterNodeChange},
		{Event: fwk.ClusterEvent{Resource: fwk.TargetPod, ActionType: fwk.UpdatePodToleration}, QueueingHintFn: afterTolerationChange},
	}, nil
}

// afterNodeChange queues the pod when a node becomes schedulable or a schedulable one appears.
func afterNodeChange(logger klog.Logger, pod *v1.Pod, oldObj, newObj any) (fwk.QueueingHint, error) {
	node, ok := newObj.(*v1.Node)
	if !ok {
		return fwk.Queue, fmt.Errorf("want *v1.Node, got %T", newObj)
	}
	before, _ := oldObj.(*v1.Node)
	if before != nil && Admits(logger, pod, before, "", nil).IsSuccess() {
		return fwk.QueueSkip, nil
	}
	if Admits(logger, pod, node, "", nil).IsSuccess() {
		return fwk.Queue, nil
	}
	return fwk.QueueSkip, nil
}

// afterTolerationChange queues the pod when it has come to tolerate cordons.
func afterTolerationChange(logger klog.Logger, _ *v1.Pod, _, newObj any) (fwk.QueueingHint, error) {
	pod, ok := newObj.(*v1.Pod)
	if !ok {
		return fwk.Queue, fmt.Errorf("want *v1.Pod, got %T", newObj)
	}
	if toleratesUnschedulable(logger, pod) {
		return fwk.Queue, nil
	}
	return fwk.QueueSkip, nil
}
