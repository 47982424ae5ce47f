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
	// Daemons is what DaemonSet pods will take of it; nil: the object's spec.resources.requests minus Pods.
	Daemons v1.ResourceList
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
	// ToleratesNotReady: the pod may be bound to a node that has node.kubernetes.io/not-ready:NoExecute still.
	ToleratesNotReady bool
}

// ClaimSeen is a NodeClaim as the API server has it: the answer of a create, or an informer's add or update. On a
// restart every claim, pool, node and bound pod is seen before Synced; reservations are rebuilt by planning against
// the claims that are open.
type ClaimSeen struct{ Claim *karpv1.NodeClaim }

// Synced says that everything the API server has was fed: until then facts are recorded and nothing is done.
type Synced struct{}

// Restore gives a claim that was found at start (or was made by hand) what its object does not say, so that it can be
// launched and planned against. It may come again, and is ignored once the claim was handed over.
type Restore struct {
	Claim string
	// Node is the planned node; nil adds none, and the claim takes no pods until its machine is ready.
	Node *v1.Node
	// Options are needed as long as the claim is not launched.
	Options []cloudprovider.LaunchOption
	Daemons v1.ResourceList
}

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
	// Reason is the condition's; "" is the failure's own name. Untried and Spent are as in cloudprovider.LaunchError.
	Reason         string
	Untried, Spent bool
	// Failures name the offerings that had nothing, if the cloud did; none with InsufficientCapacity means all.
	Failures []cloudprovider.OfferingFailure
	Message  string
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

// PodSeen is a pod that is bound, or changed while it waits. Pending pods that are not reserved are ignored.
type PodSeen struct {
	Pod
	// Node is spec.nodeName, "" while pending.
	Node string
	// DaemonSet pods (and mirror pods) keep no machine.
	DaemonSet bool
	// StatefulSet pods keep their machine while they terminate.
	StatefulSet bool
	// Evicted is true for a pod with the condition DisruptionTarget of the eviction API: somebody drains.
	Evicted bool
	// Terminal is true for Succeeded and Failed, Terminating for a deletion timestamp.
	Terminal, Terminating bool
}

// PodGone says that the pod object no longer exists; every deleted pod is told, also those that were never bound.
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
func (Synced) event()        {}
func (Restore) event()       {}
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
