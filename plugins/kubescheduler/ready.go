// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	v1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	"github.com/jit-scheduler/jit-scheduler/plugins/nodeprovisioning"
	"github.com/jit-scheduler/jit-scheduler/provisioner/plan"
)

// Ready implements plan.Fitter: real nodes that are not held, closed or cordoned, with the room that preemption has
// made for others left alone. It counts what fits one after the other; which node the scheduler will choose is open.
func (f *fitter) Ready(class *plan.Class, limit int) int {
	limit = min(limit, len(class.Pods))
	p := f.prefilter(class.Pods[0])
	if !p.status.IsSuccess() {
		return 0
	}
	nodes := f.realNodes(p)
	placed := 0
	for progress := true; progress && placed < limit; {
		progress = false
		var again []string
		for _, name := range nodes {
			n, keep := f.fill(p, class, name, limit-placed, placed)
			placed += n
			progress = progress || n > 0
			if keep {
				again = append(again, name)
			}
			if placed == limit {
				return placed
			}
		}
		nodes = again
	}
	return placed
}

// realNodes are the names of the nodes that Ready looks at.
func (f *fitter) realNodes(p *prefiltered) []string {
	var out []string
	for _, n := range f.oracle.view.nodes {
		node := n.Node()
		if f.oracle.view.made[node.Name] || nodeprovisioning.IsPlanned(node) || p.names != nil && !p.names.Has(node.Name) {
			continue
		}
		out = append(out, node.Name)
	}
	return out
}

// fill places pods of the class, from index first on, on one node: as many as fit if they do not influence each
// other, else one. keep is true if another pod may fit there once others are placed elsewhere.
func (f *fitter) fill(p *prefiltered, class *plan.Class, name string, limit, first int) (placed int, keep bool) {
	for placed < limit {
		n := f.oracle.view.get(name)
		state := f.refreshed(p)
		if s := f.oracle.framework.RunFilterPluginsWithNominatedPods(f.ctx, state.state, state.pod, n); !s.IsSuccess() {
			return placed, s.Plugin() == names.PodTopologySpread || s.Plugin() == names.InterPodAffinity
		}
		f.place(f.oracle.view.writable(name), class.Pods[first+placed])
		placed++
		if !class.Independent {
			return placed, true
		}
	}
	return placed, true
}

// refreshed is p, or its successor if a placed pod has made it stale.
func (f *fitter) refreshed(p *prefiltered) *prefiltered { return f.prefilter(p.pod) }

// runsOn says whether a DaemonSet's pod is meant for the node, as its controller decides: by affinity and taints.
func runsOn(daemon *v1.Pod, node *v1.Node) bool {
	if ok, err := nodeaffinity.GetRequiredNodeAffinity(daemon).Match(node); err != nil || !ok {
		return false
	}
	_, untolerated := corev1helpers.FindMatchingUntoleratedTaint(klog.Background(), node.Spec.Taints, daemon.Spec.Tolerations, func(t *v1.Taint) bool {
		return t.Effect == v1.TaintEffectNoSchedule || t.Effect == v1.TaintEffectNoExecute
	}, false)
	return !untolerated
}
