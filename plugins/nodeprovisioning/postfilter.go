// SPDX-License-Identifier: Apache-2.0

package nodeprovisioning

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/jit-scheduler/jit-scheduler/provisioner"
)

// Event reasons of PostFilter; refusals use the decision's own.
const (
	EventNominated = "Nominated"
	eventAction    = "Provisioning"
	// reasonNotNodeRelated: no node, old or new, can take the pod as it is.
	reasonNotNodeRelated = "NotNodeRelated"
	// reasonLaunchFailed: the launch's answer came within launchWait and was an error.
	reasonLaunchFailed = "LaunchFailed"
)

// PostFilter asks the provisioner for capacity after a cycle that saw every ready node. Its codes steer the chain:
//
//	Success                       nominated: the chain ends, preemption has nothing to do
//	UnschedulableAndUnresolvable  the cycle says nothing about other nodes: the chain ends, the pod cycles again
//	Unschedulable                 refused: the next PostFilter plugin (preemption) gets its turn
//
// A nominated or retried pod is activated, so that it is popped, and parked, at once. A refused one is not: it would
// spin; the provisioner activates it when something changes. No planned name is ever nominated: the nominator is
// copied per node and cycle.
func (pl *Plugin) PostFilter(ctx context.Context, state fwk.CycleState, pod *v1.Pod, statuses fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	if pod.Spec.NodeName != "" {
		// A resize of a bound pod: a new node cannot help.
		return nil, fwk.NewStatus(fwk.Unschedulable)
	}
	if c := pl.cycleOf(state, pod); c.node != "" {
		defer pl.activate(ctx, pod)
		pl.provisioner.Misfit(pod)
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, fmt.Sprintf("reserved node %s did not take the pod: %s", c.node, statuses.Get(c.node).Message()))
	}
	// A status for nodes that were not looked at comes from PreFilter only: the pod is refused as such, or pinned to
	// nodes by name.
	if s := statuses.Get(""); len(s.Reasons()) > 0 {
		msg := "no new node can help: " + cmp.Or(pinned(pod), s.Message())
		pl.event(ctx, pod, v1.EventTypeWarning, reasonNotNodeRelated, msg)
		return nil, fwk.NewStatus(pl.codeOf(s, statuses), msg)
	}
	return pl.provision(ctx, pod)
}

// codeOf is Unschedulable if preemption may help a pod that no new node helps: PreFilter says so, or the pod is pinned
// to nodes that exist. Otherwise the chain ends: plugins whose PreFilter never ran would fail in PostFilter.
func (pl *Plugin) codeOf(absent *fwk.Status, statuses fwk.NodeToStatusReader) fwk.Code {
	nodes, err := pl.handle.SnapshotSharedLister().NodeInfos().List()
	if err != nil || len(nodes) == 0 {
		return fwk.UnschedulableAndUnresolvable
	}
	if slices.ContainsFunc(nodes, func(n fwk.NodeInfo) bool { return statuses.Get(n.Node().Name) != absent }) {
		return fwk.Unschedulable
	}
	return absent.Code()
}

func (pl *Plugin) provision(ctx context.Context, pod *v1.Pod) (*fwk.PostFilterResult, *fwk.Status) {
	d := pl.provisioner.Provision(pod, pod.Spec.SchedulerName, pl.preempting(pod))
	switch d.Outcome {
	case provisioner.Nominated:
		defer pl.activate(ctx, pod)
		pl.event(ctx, pod, v1.EventTypeNormal, EventNominated, d.Message)
		return clearedNomination(pod, d.NodeClaim), fwk.NewStatus(fwk.Success, d.Message+pl.awaitLaunch(ctx, pod, d))
	case provisioner.Retry:
		defer pl.activate(ctx, pod)
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, d.Message)
	case provisioner.Refused:
	}
	if d.Reason != "" {
		pl.event(ctx, pod, v1.EventTypeWarning, d.Reason, d.Message)
	}
	return nil, fwk.NewStatus(pl.refusal(), d.Message)
}

// refusal is Unschedulable, so that preemption gets its turn, unless there is no node at all: preemption takes that
// for an internal error.
func (pl *Plugin) refusal() fwk.Code {
	if nodes, err := pl.handle.SnapshotSharedLister().NodeInfos().List(); err == nil && len(nodes) == 0 {
		return fwk.UnschedulableAndUnresolvable
	}
	return fwk.Unschedulable
}

// awaitLaunch waits for at most launchWait and returns what to add to the message.
func (pl *Plugin) awaitLaunch(ctx context.Context, pod *v1.Pod, d provisioner.Decision) string {
	if d.Launch == nil || pl.args.LaunchWait.Duration <= 0 {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, pl.args.LaunchWait.Duration)
	defer cancel()
	err := d.Launch(ctx)
	if err == nil || ctx.Err() != nil {
		return ""
	}
	pl.event(ctx, pod, v1.EventTypeWarning, reasonLaunchFailed, err.Error())
	return ": " + err.Error()
}

// clearedNomination removes the name of a node that the pod was nominated on before it was reserved on the claim; nil
// leaves the nomination as it is.
func clearedNomination(pod *v1.Pod, claim string) *fwk.PostFilterResult {
	if name := pod.Status.NominatedNodeName; name == "" || name == claim {
		return nil
	}
	return &fwk.PostFilterResult{NominatingInfo: &fwk.NominatingInfo{NominatingMode: fwk.ModeOverride}}
}

// preempting says whether victims of the pod are still terminating on its nominated node.
func (pl *Plugin) preempting(pod *v1.Pod) bool {
	name := pod.Status.NominatedNodeName
	if name == "" {
		return false
	}
	node, err := pl.handle.SnapshotSharedLister().NodeInfos().Get(name)
	if err != nil || node.Node() == nil || IsPlanned(node.Node()) {
		return false
	}
	for _, p := range node.GetPods() {
		victim := p.GetPod()
		if victim.DeletionTimestamp != nil && corev1helpers.PodPriority(victim) < corev1helpers.PodPriority(pod) {
			return true
		}
	}
	return false
}

func (pl *Plugin) activate(ctx context.Context, pod *v1.Pod) {
	pl.handle.Activate(klog.FromContext(ctx), map[string]*v1.Pod{string(pod.UID): pod})
}

func (pl *Plugin) event(ctx context.Context, pod *v1.Pod, eventType, reason, msg string) {
	pl.handle.EventRecorder().WithLogger(klog.FromContext(ctx)).Eventf(pod, nil, eventType, reason, eventAction, "%s", msg)
}
