// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/jit-scheduler/jit-scheduler/plugins/nodeprovisioning"
)

type schedulePodFunc = func(context.Context, framework.Framework, fwk.CycleState, *framework.QueuedPodInfo) (scheduler.ScheduleResult, error)

// schedulePod turns "there are no nodes", after which no PostFilter plugin runs, into "no node fits".
func (a *Adapter) schedulePod(inner schedulePodFunc) schedulePodFunc {
	return func(ctx context.Context, f framework.Framework, state fwk.CycleState, p *framework.QueuedPodInfo) (scheduler.ScheduleResult, error) {
		result, err := inner(ctx, f, state, p)
		if errors.Is(err, scheduler.ErrNoNodesAvailable) {
			return result, noNodes(ctx, f, state, p.Pod)
		}
		return result, err
	}
}

// noNodes is the error of a cycle without nodes. PreFilter has its say as in any cycle: a pod that it refuses is not
// helped by a node.
func noNodes(ctx context.Context, f framework.Framework, state fwk.CycleState, pod *v1.Pod) error {
	d := framework.Diagnosis{NodeToStatus: framework.NewDefaultNodeToStatus()}
	result, s, plugins := f.RunPreFilterPlugins(ctx, state, pod)
	d.UnschedulablePlugins = plugins
	switch {
	case s.IsSuccess() && !result.AllNodes():
		// Pinned to nodes by name.
		d.NodeToStatus.SetAbsentNodesStatus(fwk.NewStatus(fwk.UnschedulableAndUnresolvable, fmt.Sprintf("node(s) didn't satisfy plugin(s) %v", sets.List(plugins))))
	case s.IsSuccess():
		// Without a rejector any event would wake the pod.
		d.UnschedulablePlugins = sets.New(nodeprovisioning.Name)
	case s.IsRejected():
		d.NodeToStatus.SetAbsentNodesStatus(s)
		d.PreFilterMsg = s.Message()
		d.AddPluginStatus(s)
	default:
		return s.AsError()
	}
	return &framework.FitError{Pod: pod, Diagnosis: d}
}
