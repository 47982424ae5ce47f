// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
)

// Action is one thing to do. Those of the scheduler (…PlannedNode, Requeue, Activate) take effect at once, in order,
// before the loop takes the next event; the others run beside it and report back.
type Action interface {
	// Key names the effect; two actions with one key are never in flight together.
	Key() string
}

// AddPlannedNode puts the node of an incoming claim into the scheduler's cache.
type AddPlannedNode struct{ Node *v1.Node }

// UpdatePlannedNode replaces it: the launch answered, or the real node's hostname is known.
type UpdatePlannedNode struct{ Node *v1.Node }

// RemovePlannedNode takes it out again; its parked pods were requeued before.
type RemovePlannedNode struct{ Name string }

// Requeue takes parked pods off their planned node and puts them into the scheduling queue: paired with Node if
// that is set (handover), otherwise to be planned again.
type Requeue struct {
	Claim string
	Pods  []types.UID
	Node  string
	// Reason says why, for the event of a pod that is not handed over.
	Reason string
}

// Activate wakes pods that wait in the queue.
type Activate struct{ Pods []types.UID }

// PoolOpen says that a pool whose launches were refused may open claims again: who was refused because of that is
// planned again, all together.
type PoolOpen struct{ Pool string }

// CreateClaim creates the NodeClaim; answered by ClaimSeen or ClaimRefused (or Failed: try again).
type CreateClaim struct{ Object *karpv1.NodeClaim }

// Launch calls the cloud for a group; answered by Launched or LaunchFailed.
type Launch struct {
	Group   string
	Attempt int
	// Claims are the group's, by ordinal. Options and Node (labels, taints) are the same for all.
	Claims  []*karpv1.NodeClaim
	Options []cloudprovider.LaunchOption
}

// FindInstances asks what a group has launched; answered by Found.
type FindInstances struct{ Group string }

// TagInstance writes on an instance what was not known at its launch: the names of its claim and its node.
type TagInstance struct{ Claim, ProviderID, Node string }

// PatchClaim writes status, labels and annotations of a claim as they should be (merge patch of the difference).
type PatchClaim struct{ Claim *karpv1.NodeClaim }

// RegisterNode brings the Node to what its claim says in one patch: labels, taints, finalizer, owner,
// karpenter.sh/registered, unregistered removed, and the hold if Hold is set (until the given time).
type RegisterNode struct {
	Node  string
	Claim *karpv1.NodeClaim
	Hold  bool
	// HoldUntil is written into the hold annotation, so that a dead scheduler leaves a trace to clean up.
	HoldUntil int64
}

// InitializeNode writes the label karpenter.sh/initialized.
type InitializeNode struct{ Node string }

// ReleaseHold uncordons the node and removes the hold annotation in one patch, if the hold is still ours. Keep
// leaves the cordon: a person's.
type ReleaseHold struct {
	Node string
	Keep bool
}

// TaintNode sets or removes karpenter.sh/disrupted:NoSchedule.
type TaintNode struct {
	Node  string
	Taint bool
}

// DeleteClaim deletes the NodeClaim object (its finalizer keeps it until the machine is gone).
type DeleteClaim struct {
	Name string
	UID  types.UID
	// Reason is for the log and the event: Empty, LaunchFailed, RegistrationTimeout, …; Message says the saving.
	Reason, Message string
}

// DeleteNode deletes the Node object of a claim that is being deleted, if it is still the one of that UID.
type DeleteNode struct {
	Node string
	UID  types.UID
}

// Drain evicts what is left on a node; answered by Drained.
type Drain struct {
	Node string
	// Deadline is the unix time after which pods are deleted without asking (terminationGracePeriod), 0: never.
	Deadline int64
}

// Terminate ends an instance; answered by Done, and by InstanceGone when the cloud no longer has it.
type Terminate struct{ ProviderID, Claim string }

// AwaitTermination asks the cloud whether the instance is gone; answered by InstanceGone or Failed.
type AwaitTermination struct{ ProviderID, Claim string }

// RemoveNodeFinalizer lets the Node of that UID go.
type RemoveNodeFinalizer struct {
	Node string
	UID  types.UID
}

// RemoveClaimFinalizer lets the NodeClaim of that UID go.
type RemoveClaimFinalizer struct {
	Name string
	UID  types.UID
}

// Publish records an event on a NodeClaim (or its Node): type, reason and message as users see them. Pods that wait for
// the machine are told too.
type Publish struct {
	Pods                  []Pod
	Claim, Node           string
	Type, Reason, Message string
}

// Key implements Action.
func (a AddPlannedNode) Key() string { return "AddPlannedNode/" + a.Node.Name }

// Key implements Action.
func (a UpdatePlannedNode) Key() string { return "UpdatePlannedNode/" + a.Node.Name }

// Key implements Action.
func (a RemovePlannedNode) Key() string { return "RemovePlannedNode/" + a.Name }

// Key implements Action.
func (a Requeue) Key() string { return "Requeue/" + a.Claim }

// Key implements Action.
func (Activate) Key() string { return "Activate" }

// Key implements Action.
func (a PoolOpen) Key() string { return "PoolOpen/" + a.Pool }

// Key implements Action.
func (a CreateClaim) Key() string { return "CreateClaim/" + a.Object.Name }

// Key implements Action.
func (a Launch) Key() string { return "Launch/" + a.Group }

// Key implements Action.
func (a FindInstances) Key() string { return "FindInstances/" + a.Group }

// Key implements Action.
func (a TagInstance) Key() string { return "TagInstance/" + a.Claim }

// Key implements Action.
func (a PatchClaim) Key() string { return "PatchClaim/" + a.Claim.Name }

// Key implements Action.
func (a RegisterNode) Key() string { return "RegisterNode/" + a.Node }

// Key implements Action.
func (a InitializeNode) Key() string { return "InitializeNode/" + a.Node }

// Key implements Action.
func (a ReleaseHold) Key() string { return "ReleaseHold/" + a.Node }

// Key implements Action.
func (a TaintNode) Key() string { return "TaintNode/" + a.Node }

// Key implements Action.
func (a DeleteClaim) Key() string { return "DeleteClaim/" + a.Name }

// Key implements Action.
func (a DeleteNode) Key() string { return "DeleteNode/" + a.Node }

// Key implements Action.
func (a Drain) Key() string { return "Drain/" + a.Node }

// Key implements Action.
func (a Terminate) Key() string { return "Terminate/" + a.ProviderID }

// Key implements Action.
func (a AwaitTermination) Key() string { return "AwaitTermination/" + a.ProviderID }

// Key implements Action.
func (a RemoveNodeFinalizer) Key() string { return "RemoveNodeFinalizer/" + a.Node }

// Key implements Action.
func (a RemoveClaimFinalizer) Key() string { return "RemoveClaimFinalizer/" + a.Name }

// Key implements Action.
func (a Publish) Key() string { return "Publish/" + a.Claim + "/" + a.Reason }
