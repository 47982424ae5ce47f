// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
)

// Event is one fact from outside: a decision, an observation of the API server, or the outcome of an action.
type Event interface{ event() }

// Planned commits a plan: claims to open and pods that join open ones. All of it is in the ledger when Apply returns.
type Planned struct {
	Groups []Group
	Joins  []Join
}

// Group is a set of identical claims that one launch call makes.
type Group struct {
	// ID is written on every claim (annotation jit-scheduler.io/launch-group) and, with the attempt, is the token.
	ID     string
	Claims []NewClaim
}

// NewClaim is a claim that the plan opens.
type NewClaim struct {
	// Object is the NodeClaim to create, complete with name, labels, annotations, owner and finalizer.
	Object *karpv1.NodeClaim
	// Node is the planned node, named like the claim.
	Node *v1.Node
	// Options are the offerings the launch may choose from, cheapest first.
	Options []cloudprovider.LaunchOption
	Pods    []Pod
}

// Join reserves pods on an open claim.
type Join struct {
	Claim string
	Pods  []Pod
}

// Pod is what the ledger keeps of a pod.
type Pod struct {
	UID             types.UID
	Namespace, Name string
	// Requests are effective and include pods: 1.
	Requests v1.ResourceList
}

// ClaimSeen is a NodeClaim as the API server has it: the answer of a create, or an informer's add or update. On a
// restart every claim is seen before the first pod is popped, and reservations are rebuilt by planning against the
// claims that are open.
type ClaimSeen struct{ Claim *karpv1.NodeClaim }

// ClaimGone says that the NodeClaim object no longer exists.
type ClaimGone struct{ Name string }

// ClaimRefused says that the API server does not take the NodeClaim (quota, webhook): it will not exist.
type ClaimRefused struct{ Name, Message string }

// Launched is the answer of a Launch action. Instances are matched to the group's claims by ordinal; those that
// already carry a claim's name keep it.
type Launched struct {
	Group     string
	Attempt   int
	Instances []cloudprovider.Instance
	Failures  []cloudprovider.OfferingFailure
}

// LaunchFailed is the error of a Launch action.
type LaunchFailed struct {
	Group   string
	Attempt int
	Failure cloudprovider.LaunchFailure
	Message string
}

// Found is the answer of FindInstances: what the cloud has for the group, however often it was launched.
type Found struct {
	Group     string
	Instances []cloudprovider.Instance
}

// NodeSeen is a Node as the API server has it.
type NodeSeen struct{ Node *v1.Node }

// NodeGone says that the Node object no longer exists.
type NodeGone struct{ Name string }

// InstanceGone says that the cloud no longer has the instance of a claim.
type InstanceGone struct{ ProviderID string }

// PodSeen is a pod that is bound, or changed while it waits. Pods on nodes that are not ours are ignored.
type PodSeen struct {
	Pod
	// Node is spec.nodeName, "" while pending.
	Node string
	// DaemonSet pods (and mirror pods) keep no machine.
	DaemonSet bool
	// Terminal is true for Succeeded and Failed, Terminating for a deletion timestamp.
	Terminal, Terminating bool
}

// PodGone says that the pod object no longer exists.
type PodGone struct{ UID types.UID }

// PodReserved says that a cycle has chosen Node for the pod (Reserve); PodUnreserved that the choice failed later.
type PodReserved struct {
	UID  types.UID
	Node string
}

// PodUnreserved gives a reservation back: the pod is in the queue again and not bound.
type PodUnreserved struct{ UID types.UID }

// PodMisfit says that the paired pod failed its cycle on its real node: it is un-planned.
type PodMisfit struct{ UID types.UID }

// Drained reports a Drain action: Remaining pods are still there (0: done).
type Drained struct {
	Node      string
	Remaining int
}

// Done reports success of any action that has no event of its own; Failed its failure, to be repeated after a
// back-off. Key is Action.Key().
type Done struct{ Key string }

// Failed is the failure of an action; Gone is true if its object does not exist any more.
type Failed struct {
	Key     string
	Message string
	Gone    bool
}

// PoolSeen carries what the machine needs of a NodePool: when empty nodes may go.
type PoolSeen struct{ Pool *karpv1.NodePool }

// PoolGone says that a NodePool was deleted: its claims are deleted as well (owner references do that too).
type PoolGone struct{ Name string }

// Tick is the passage of time: deadlines, back-offs and consolidateAfter.
type Tick struct{}

func (Planned) event()       {}
func (ClaimSeen) event()     {}
func (ClaimGone) event()     {}
func (ClaimRefused) event()  {}
func (Launched) event()      {}
func (LaunchFailed) event()  {}
func (Found) event()         {}
func (NodeSeen) event()      {}
func (NodeGone) event()      {}
func (InstanceGone) event()  {}
func (PodSeen) event()       {}
func (PodGone) event()       {}
func (PodReserved) event()   {}
func (PodUnreserved) event() {}
func (PodMisfit) event()     {}
func (Drained) event()       {}
func (Done) event()          {}
func (Failed) event()        {}
func (PoolSeen) event()      {}
func (PoolGone) event()      {}
func (Tick) event()          {}
