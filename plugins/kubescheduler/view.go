// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"fmt"

	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// view is the snapshot that an oracle's plugins read: the world, the nodes opened in this plan and the candidates.
// NodeInfos of the world are cloned before they change. The lists of pod groups are the scheduler's own.
type view struct {
	fwk.SharedLister // PodGroupStates and the like

	nodes  []fwk.NodeInfo
	index  map[string]int
	owned  map[string]bool
	made   map[string]bool
	opened int // nodes[opened:] are candidates

	affinity, antiAffinity, wideAntiAffinity []fwk.NodeInfo
	stale                                    bool
}

var (
	_ fwk.SharedLister      = &view{}
	_ fwk.NodeInfoLister    = &view{}
	_ fwk.StorageInfoLister = &view{}
)

// reset starts over with the nodes of the world.
func (v *view) reset(world []*framework.NodeInfo) {
	v.nodes = make([]fwk.NodeInfo, 0, len(world))
	v.index = make(map[string]int, len(world))
	v.owned, v.made = map[string]bool{}, map[string]bool{}
	for _, n := range world {
		v.append(n)
	}
	v.opened = len(v.nodes)
	v.stale = true
}

func (v *view) append(n fwk.NodeInfo) {
	v.index[n.Node().Name] = len(v.nodes)
	v.nodes = append(v.nodes, n)
	v.stale = true
}

// dropCandidates removes the nodes that were offered but not opened.
func (v *view) dropCandidates() {
	for _, n := range v.nodes[v.opened:] {
		delete(v.index, n.Node().Name)
		delete(v.made, n.Node().Name)
		delete(v.owned, n.Node().Name)
	}
	clear(v.nodes[v.opened:])
	v.nodes = v.nodes[:v.opened]
	v.stale = true
}

// offer adds a made-up node: a candidate until keep.
func (v *view) offer(n *framework.NodeInfo) {
	name := n.Node().Name
	v.owned[name], v.made[name] = true, true
	v.append(n)
}

// keep adds a node that stays when candidates are replaced.
func (v *view) keep(n *framework.NodeInfo) {
	name := n.Node().Name
	v.owned[name], v.made[name] = true, true
	v.append(n)
	// Swap it to the front of the candidates.
	last := len(v.nodes) - 1
	v.nodes[v.opened], v.nodes[last] = v.nodes[last], v.nodes[v.opened]
	v.index[v.nodes[last].Node().Name] = last
	v.index[name] = v.opened
	v.opened++
}

// get returns the node, nil if there is none.
func (v *view) get(name string) *framework.NodeInfo {
	i, ok := v.index[name]
	if !ok {
		return nil
	}
	return v.nodes[i].(*framework.NodeInfo)
}

// writable returns the node as this view's own.
func (v *view) writable(name string) *framework.NodeInfo {
	n := v.get(name)
	if n == nil || v.owned[name] {
		return n
	}
	n = n.SnapshotConcrete()
	v.nodes[v.index[name]] = n
	v.owned[name] = true
	v.stale = true
	return n
}

// NodeInfos implements fwk.SharedLister.
func (v *view) NodeInfos() fwk.NodeInfoLister { return v }

// StorageInfos implements fwk.SharedLister.
func (v *view) StorageInfos() fwk.StorageInfoLister { return v }

// List implements fwk.NodeInfoLister.
func (v *view) List() ([]fwk.NodeInfo, error) { return v.nodes, nil }

// Get implements fwk.NodeInfoLister.
func (v *view) Get(name string) (fwk.NodeInfo, error) {
	if n := v.get(name); n != nil {
		return n, nil
	}
	return nil, fmt.Errorf("nodeinfo not found for node name %q", name)
}

// HavePodsWithAffinityList implements fwk.NodeInfoLister.
func (v *view) HavePodsWithAffinityList() ([]fwk.NodeInfo, error) {
	v.sort()
	return v.affinity, nil
}

// HavePodsWithRequiredAntiAffinityList implements fwk.NodeInfoLister.
func (v *view) HavePodsWithRequiredAntiAffinityList() ([]fwk.NodeInfo, error) {
	v.sort()
	return v.antiAffinity, nil
}

// HavePodsWithRequiredNonHostScopedAntiAffinityList implements fwk.NodeInfoLister.
func (v *view) HavePodsWithRequiredNonHostScopedAntiAffinityList() ([]fwk.NodeInfo, error) {
	v.sort()
	return v.wideAntiAffinity, nil
}

// IsPVCUsedByPods implements fwk.StorageInfoLister; it is asked for ReadWriteOncePod claims only.
func (v *view) IsPVCUsedByPods(key string) bool {
	for _, n := range v.nodes {
		if n.GetPVCRefCounts()[key] > 0 {
			return true
		}
	}
	return false
}

// sort rebuilds the lists of nodes by the affinity of their pods.
func (v *view) sort() {
	if !v.stale {
		return
	}
	v.stale = false
	v.affinity, v.antiAffinity, v.wideAntiAffinity = nil, nil, nil
	for _, n := range v.nodes {
		if len(n.GetPodsWithAffinity()) > 0 {
			v.affinity = append(v.affinity, n)
		}
		if len(n.GetPodsWithRequiredAntiAffinity()) > 0 {
			v.antiAffinity = append(v.antiAffinity, n)
		}
		if len(n.GetPodsWithRequiredNonHostScopedAntiAffinity()) > 0 {
			v.wideAntiAffinity = append(v.wideAntiAffinity, n)
		}
	}
}
