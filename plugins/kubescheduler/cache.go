// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"slices"
	"strconv"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/jit-scheduler/jit-scheduler/plugins/nodeprovisioning"
)

// trackedCache is the scheduler's cache, with a note of which nodes have changed since world was refreshed. A second
// Snapshot of the cache is no way to learn that: UpdateSnapshot hands each change of PVC use to one snapshot only.
//
// A node is noted after its change: noted before, a refresh in between would take the note and the old state.
type trackedCache struct {
	internalcache.Cache

	mu    sync.Mutex
	dirty map[string]struct{}
	// version is the highest resource version of the Nodes that the cache was told of.
	version uint64
}

func newTrackedCache(c internalcache.Cache) *trackedCache {
	return &trackedCache{Cache: c, dirty: map[string]struct{}{}}
}

// takeDirty returns the nodes that have changed since the last call.
func (c *trackedCache) takeDirty() map[string]struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.dirty
	c.dirty = map[string]struct{}{}
	return d
}

func (c *trackedCache) note(names ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range names {
		if n != "" {
			c.dirty[n] = struct{}{}
		}
	}
}

// told notes a change of a Node, after it.
func (c *trackedCache) told(node *v1.Node) {
	c.note(node.Name)
	c.mu.Lock()
	defer c.mu.Unlock()
	if v, err := strconv.ParseUint(node.ResourceVersion, 10, 64); err == nil { // planned nodes have none
		c.version = max(c.version, v)
	}
}

// saw says whether the cache was told of this version of a Node, or of a later event of any.
func (c *trackedCache) saw(node *v1.Node) bool {
	v, err := strconv.ParseUint(node.ResourceVersion, 10, 64)
	c.mu.Lock()
	defer c.mu.Unlock()
	return err != nil || v <= c.version
}

// known is the node on which the cache has the pod now.
func (c *trackedCache) known(pod *v1.Pod) string {
	if p, err := c.Cache.GetPod(pod); err == nil {
		return p.Spec.NodeName
	}
	return ""
}

// AssumePod implements internalcache.Cache.
func (c *trackedCache) AssumePod(logger klog.Logger, pod *v1.Pod) error {
	defer c.note(pod.Spec.NodeName)
	return c.Cache.AssumePod(logger, pod)
}

// ForgetPod implements internalcache.Cache.
func (c *trackedCache) ForgetPod(logger klog.Logger, pod *v1.Pod) error {
	defer c.note(pod.Spec.NodeName)
	return c.Cache.ForgetPod(logger, pod)
}

// RemoveAssumedPod implements internalcache.Cache.
func (c *trackedCache) RemoveAssumedPod(logger klog.Logger, pod *v1.Pod) error {
	defer c.note(pod.Spec.NodeName)
	return c.Cache.RemoveAssumedPod(logger, pod)
}

// AddPod implements internalcache.Cache.
func (c *trackedCache) AddPod(logger klog.Logger, pod *v1.Pod) error {
	defer c.note(pod.Spec.NodeName, c.known(pod))
	return c.Cache.AddPod(logger, pod)
}

// UpdatePod implements internalcache.Cache.
func (c *trackedCache) UpdatePod(logger klog.Logger, oldPod, newPod *v1.Pod) error {
	defer c.note(oldPod.Spec.NodeName, newPod.Spec.NodeName)
	return c.Cache.UpdatePod(logger, oldPod, newPod)
}

// RemovePod implements internalcache.Cache.
func (c *trackedCache) RemovePod(logger klog.Logger, pod *v1.Pod) error {
	defer c.note(pod.Spec.NodeName, c.known(pod))
	return c.Cache.RemovePod(logger, pod)
}

// AddNode implements internalcache.Cache.
func (c *trackedCache) AddNode(logger klog.Logger, node *v1.Node) {
	defer c.told(node)
	c.Cache.AddNode(logger, uncordoned(node))
}

// uncordoned is a held node without the taint that the node lifecycle controller adds to every cordoned one: it would
// stop the pods that the node is held for. Everybody else is kept off by NodeProvisioning's own Filter, which every
// profile has.
func uncordoned(node *v1.Node) *v1.Node {
	if !nodeprovisioning.IsHeld(node) {
		return node
	}
	out := *node
	out.Spec.Taints = slices.DeleteFunc(slices.Clone(node.Spec.Taints), func(t v1.Taint) bool {
		return t.Key == v1.TaintNodeUnschedulable
	})
	return &out
}

// UpdateNode implements internalcache.Cache.
func (c *trackedCache) UpdateNode(logger klog.Logger, oldNode, newNode *v1.Node) {
	defer c.told(newNode)
	c.Cache.UpdateNode(logger, oldNode, uncordoned(newNode))
}

// RemoveNode implements internalcache.Cache.
func (c *trackedCache) RemoveNode(logger klog.Logger, node *v1.Node) error {
	defer c.told(node)
	return c.Cache.RemoveNode(logger, node)
}

// world is a private copy of the cache's nodes, planned ones and parked pods included. Its NodeInfos are replaced,
// never changed: whoever changes one clones it first.
type world struct {
	cache *trackedCache

	mu    sync.Mutex
	nodes map[string]*framework.NodeInfo
}

func newWorld(c *trackedCache) *world {
	return &world{cache: c, nodes: map[string]*framework.NodeInfo{}}
}

// refresh copies what has changed and returns all nodes in no order.
func (w *world) refresh() []*framework.NodeInfo {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name := range w.cache.takeDirty() {
		info, err := w.cache.GetNode(name)
		if err != nil || info.Node() == nil {
			delete(w.nodes, name)
			continue
		}
		w.nodes[name] = info
	}
	all := make([]*framework.NodeInfo, 0, len(w.nodes))
	for _, n := range w.nodes {
		all = append(all, n)
	}
	return all
}
