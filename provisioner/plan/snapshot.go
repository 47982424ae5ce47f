// SPDX-License-Identifier: Apache-2.0

package plan

import (
	v1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
)

// Snapshot is everything that Plan may know.
type Snapshot struct {
	// Pools are the NodePools that may open NodeClaims now: ready, dynamic, ours. Plan orders them itself
	// (weight descending, then name).
	Pools []Pool
	// Classes are the pending pods in the order of the scheduling queue (priority first).
	Classes []Class
	// Open are the NodeClaims on their way that may take more pods.
	Open []OpenNode
	// MaxTypes is the number of instance types that a NodeClaim lists at most (0: 60). A launch asks for the first
	// FirstTypes of them (0: all); the others are for when those have no capacity, and are listed only if they take
	// no more of the pool's limits.
	MaxTypes, FirstTypes int
}

// Pool is a NodePool as the planner sees it.
type Pool struct {
	NodePool *karpv1.NodePool
	// Types are the instance types of its class; offerings that are not Available are skipped.
	Types []*cloudprovider.InstanceType
	// Absent are resources that the pool's machines were to have and that one of them, which is named, has waited for
	// in vain: no type has them.
	Absent map[v1.ResourceName]string
	// InUse is what the pool's NodeClaims take of its limits, those in flight and "nodes" included.
	InUse v1.ResourceList
	// Daemons are the pods that DaemonSets of the cluster may put on the pool's nodes; the Fitter is asked which
	// of them each candidate will get.
	Daemons []*v1.Pod
}

// Class is a set of pending pods that are the same for scheduling.
type Class struct {
	// Pods are never empty; the first stands for all.
	Pods []*v1.Pod
	// Requests are the effective requests of one pod, including pods: 1.
	Requests v1.ResourceList
	// Independent is true if placing one pod of the class can change nothing for the next but the room left on
	// the node: no spread, no (anti-)affinity, no host port, no volume, no claim.
	Independent bool
}

// OpenNode is a planned node: a NodeClaim whose machine is on its way.
type OpenNode struct {
	Name string
	Pool string
	// Free is what may still be promised: the least that any of its types would have, minus DaemonSets, minus
	// the pods reserved on it.
	Free v1.ResourceList
}

// Fitter answers with the real Filter plugins over a private copy of the scheduler's snapshot, planned nodes and
// their parked pods included. It is used by one Plan call only.
type Fitter interface {
	// Ready returns how many of the class's pods ready nodes can take now, one after the other (each is counted as
	// placed for every later answer), at most limit.
	Ready(class *Class, limit int) int
	// Fit says for each named node (planned, opened or candidate) whether one more pod like this passes all
	// filters there. len(result) == len(nodes). Plan asks with the first pod of a class for all of them, also after
	// that pod was placed.
	Fit(pod *v1.Pod, nodes []string) []Verdict
	// Place counts the pods as assumed on the node in every later answer.
	Place(node string, pods ...*v1.Pod)
	// Candidates offers made-up empty nodes to Fit, until the next call of Candidates; their topology domains
	// count as existing. Names must not collide with planned nodes. The result lists, per node, which of its
	// daemons will run there and are now counted on it (requests and host ports).
	Candidates(nodes []Candidate) [][]*v1.Pod
	// Open makes a copy of a candidate permanent for this plan, under its new name (also its hostname label). The
	// candidate itself stays on offer, empty: opening it again makes another node.
	Open(candidate, name string)
}

// Candidate is a node that could be bought.
type Candidate struct {
	Node    *v1.Node
	Daemons []*v1.Pod
}

// Verdict is a filter answer.
type Verdict struct {
	Fits bool
	// Plugin and Reason say which plugin refused, in its own words.
	Plugin, Reason string
	// Terminal is true if the refusal does not depend on the node (a missing PVC): no node can help.
	Terminal bool
}
