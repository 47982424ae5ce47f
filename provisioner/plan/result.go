// SPDX-License-Identifier: Apache-2.0

package plan

import (
	v1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
)

// Result is what to do. Every pod of the snapshot is in exactly one of the lists.
type Result struct {
	// Ready counts, per class, the pods left for ready nodes: they are not planned, an ordinary cycle binds them.
	Ready [][]*v1.Pod
	// Joined are pods for NodeClaims that are on their way.
	Joined []Join
	// Opened are new NodeClaims.
	Opened []NewNode
	// Unplaced are the pods that nothing helps, with the reason.
	Unplaced []Unplaced
}

// Join puts pods on an open NodeClaim.
type Join struct {
	Node string
	Pods []*v1.Pod
}

// NewNode is a NodeClaim to open. Options and Requirements are shared between NewNodes: they must not be written to.
type NewNode struct {
	// Name is the one under which the Fitter knows it: "<pool>#<ordinal>" within this plan; the caller renames.
	Name string
	Pool string
	// Node is what will register, as its cheapest option: labels, taints, capacity, allocatable.
	Node *v1.Node
	// Options are all offerings that hold the pods, cheapest first; never empty.
	Options []cloudprovider.LaunchOption
	// Requirements are the NodeClaim's: the pool's and its pods' node affinity, narrowed to what Options have.
	Requirements []karpv1.NodeSelectorRequirementWithMinValues
	// Requests are the pods' and the daemons' together: the NodeClaim's spec.resources.requests.
	Requests v1.ResourceList
	// Daemons are the DaemonSet pods that are counted on it.
	Daemons []*v1.Pod
	Pods    []*v1.Pod
	// Group is equal for NewNodes of one plan that are identical for a launch (pool, options, requirements).
	Group int
}

// Unplaced is why pods of one class stay pending.
type Unplaced struct {
	Pods []*v1.Pod
	// Reason is stable and CamelCase: NoInstanceTypeFits, NodePoolLimitReached, NoNodePool, NotNodeRelated,
	// NodePoolIncompatible, InsufficientCapacity.
	Reason string
	// Message is one sentence, at most 250 characters: which pool, what removed the types, the number needed and
	// the largest available, what would fix it.
	Message string
}
