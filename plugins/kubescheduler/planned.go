// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	v1 "k8s.io/api/core/v1"

	"github.com/jit-scheduler/jit-scheduler/plugins/nodeprovisioning"
)

// AddPlannedNode implements provisioner.Scheduler. A name that is there already is updated. The cache sends no queue
// event: nobody can go there.
func (a *Adapter) AddPlannedNode(node *v1.Node) { a.setPlanned(node) }

// UpdatePlannedNode implements provisioner.Scheduler. A name that is not there is added.
func (a *Adapter) UpdatePlannedNode(node *v1.Node) { a.setPlanned(node) }

// setPlanned gives the cache the node, always against the last object it was given: any other leaves a node behind
// when the zone differs.
func (a *Adapter) setPlanned(node *v1.Node) {
	if !nodeprovisioning.IsPlanned(node) {
		node = node.DeepCopy()
		if node.Annotations == nil {
			node.Annotations = map[string]string{}
		}
		node.Annotations[nodeprovisioning.PlannedAnnotation] = "true"
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if last, ok := a.planned[node.Name]; ok {
		a.cache.UpdateNode(a.logger, last, node)
	} else {
		a.cache.AddNode(a.logger, node)
	}
	a.planned[node.Name] = node
}

// RemovePlannedNode implements provisioner.Scheduler. Its parked pods were unparked before.
func (a *Adapter) RemovePlannedNode(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	last, ok := a.planned[name]
	if !ok {
		return
	}
	delete(a.planned, name)
	if err := a.cache.RemoveNode(a.logger, last); err != nil {
		a.logger.Error(err, "Removing a planned node from the scheduler's cache", "node", name)
	}
}

func (a *Adapter) isPlanned(name string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, ok := a.planned[name]
	return ok
}

// Saw implements provisioner.Scheduler.
func (a *Adapter) Saw(node *v1.Node) bool { return a.cache.saw(node) }
