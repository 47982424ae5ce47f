// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jit-scheduler/jit-scheduler/provisioner/plan"
)

// Scheduler is what the provisioner needs of the scheduler it lives in; plugins/kubescheduler implements it. It is the
// one owner of what we put into the scheduler's cache and queue. All methods are quick and do no I/O; they may be
// called from the scheduling thread and from the event loop, never while a Fitter runs on another goroutine.
type Scheduler interface {
	// AddPlannedNode, UpdatePlannedNode and RemovePlannedNode keep an incoming NodeClaim's node in the cache.
	AddPlannedNode(node *v1.Node)
	UpdatePlannedNode(node *v1.Node)
	RemovePlannedNode(name string)
	// Unpark takes pods off their planned node (Cache.ForgetPod) and puts them back into the queue
	// (SchedulingQueue.Add), as their latest versions. Pods that are not parked are only activated.
	Unpark(pods []types.UID)
	// Drop forgets a parked pod that was deleted or bound by somebody else.
	Drop(pod types.UID)
	// Activate wakes pods that wait in the queue.
	Activate(pods []types.UID)
	// Parked is the latest version of a parked pod, nil if it is not parked (any more).
	Parked(pod types.UID) *v1.Pod
	// Pending lists the pods that the queue knows, active first and by priority, without gated pods, without pods of
	// profiles that lack the plugin, and without pods being parked.
	Pending() []*v1.Pod
	// Saw says whether the scheduler's cache knows this version of a Node, or a later event: its informer handler is
	// another than ours, and which comes first is chance.
	Saw(node *v1.Node) bool
	// NewFitter makes a Filter oracle over a fresh private snapshot for the pods of one profile (schedulerName).
	NewFitter(profile string) (plan.Fitter, error)
}
