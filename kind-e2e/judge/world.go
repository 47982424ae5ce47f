// SPDX-License-Identifier: Apache-2.0

package judge

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// world is the cluster at one moment.
type world struct {
	pods   map[types.UID]*corev1.Pod
	nodes  map[string]*corev1.Node
	claims map[string]*Claim
	events map[types.UID]Observation // last one by the event's own UID
	pvcs   map[types.UID]*corev1.PersistentVolumeClaim
}

func newWorld() *world {
	return &world{
		pods:   map[types.UID]*corev1.Pod{},
		nodes:  map[string]*corev1.Node{},
		claims: map[string]*Claim{},
		events: map[types.UID]Observation{},
		pvcs:   map[types.UID]*corev1.PersistentVolumeClaim{},
	}
}

// change is an observation with what was there before; nil if nothing was.
type change struct {
	*Observation

	oldPod  *corev1.Pod
	oldNode *corev1.Node
}

// bound reports whether this is the change that bound a pod to a node. A pod
// that was created with a node name, or bound before the judge looked, was not
// bound by a scheduler that is judged.
func (c *change) bound() bool {
	return c.Pod != nil && c.Op != Deleted && c.oldPod != nil &&
		c.oldPod.Spec.NodeName == "" && c.Pod.Spec.NodeName != ""
}

// apply makes the observation true.
func (w *world) apply(o *Observation) *change {
	c := &change{Observation: o}
	switch {
	case o.Pod != nil:
		c.oldPod = put(w.pods, o.Pod.UID, o.Pod, o.Op)
	case o.Node != nil:
		c.oldNode = put(w.nodes, o.Node.Name, o.Node, o.Op)
	case o.Claim != nil:
		put(w.claims, o.Claim.Name, o.Claim, o.Op)
	case o.Event != nil:
		put(w.events, o.Event.UID, *o, o.Op)
	case o.PVC != nil:
		put(w.pvcs, o.PVC.UID, o.PVC, o.Op)
	}
	return c
}

func put[K comparable, V any](objects map[K]V, key K, object V, op Op) V {
	old := objects[key]
	if op == Deleted {
		delete(objects, key)
	} else {
		objects[key] = object
	}
	return old
}
