// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"context"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	"github.com/jit-scheduler/jit-scheduler/provisioner/plan"
)

// fitter implements plan.Fitter for one plan.
type fitter struct {
	oracle *oracle
	ctx    context.Context

	// recent are PreFilter results that still hold, newest last: Place brings them up to date as preemption does,
	// everything else drops them.
	recent []*prefiltered
}

var _ plan.Fitter = &fitter{}

// maxRecent bounds what Place has to bring up to date.
const maxRecent = 4

// prefiltered is what PreFilter said of one pod.
type prefiltered struct {
	uid    types.UID
	pod    *v1.Pod
	state  fwk.CycleState
	status *fwk.Status
	// names is not nil if the pod is pinned to nodes by name, by the plugins.
	names   sets.Set[string]
	plugins sets.Set[string]
}

func (f *fitter) prefilter(pod *v1.Pod) *prefiltered {
	for _, p := range f.recent {
		if p.uid == pod.UID && p.pod == pod {
			return p
		}
	}
	p := &prefiltered{uid: pod.UID, pod: pod, state: framework.NewCycleState()}
	var result *fwk.PreFilterResult
	result, p.status, p.plugins = f.oracle.framework.RunPreFilterPlugins(f.ctx, p.state, pod)
	if !result.AllNodes() {
		p.names = result.NodeNames
	}
	if len(f.recent) == maxRecent {
		f.recent = append(f.recent[:0], f.recent[1:]...)
	}
	f.recent = append(f.recent, p)
	return p
}

// Fit implements plan.Fitter.
func (f *fitter) Fit(pod *v1.Pod, nodes []string) []plan.Verdict {
	out := make([]plan.Verdict, len(nodes))
	p := f.prefilter(pod)
	for i, name := range nodes {
		out[i] = f.verdict(p, name)
	}
	return out
}

func (f *fitter) verdict(p *prefiltered, name string) plan.Verdict {
	if !p.status.IsSuccess() {
		return plan.Verdict{Plugin: p.status.Plugin(), Reason: p.status.Message(), Terminal: p.status.IsRejected()}
	}
	if p.names != nil && !p.names.Has(name) {
		plugin := ""
		if p.plugins.Len() > 0 {
			plugin = sets.List(p.plugins)[0]
		}
		return plan.Verdict{Plugin: plugin, Reason: "pod is pinned to nodes by name", Terminal: true}
	}
	n := f.oracle.view.get(name)
	if n == nil {
		return plan.Verdict{Reason: "node " + name + " is not known"}
	}
	s := f.oracle.framework.RunFilterPlugins(f.ctx, p.state, p.pod, n)
	if s.IsSuccess() {
		return plan.Verdict{Fits: true}
	}
	return plan.Verdict{Plugin: s.Plugin(), Reason: s.Message()}
}

// Place implements plan.Fitter. Pods that are on the node already (parked) are not counted twice.
func (f *fitter) Place(node string, pods ...*v1.Pod) {
	n := f.oracle.view.writable(node)
	if n == nil {
		return
	}
	there := make(map[types.UID]struct{}, len(n.Pods))
	for _, p := range n.Pods {
		there[p.GetPod().UID] = struct{}{}
	}
	for _, pod := range pods {
		if _, ok := there[pod.UID]; ok {
			continue
		}
		there[pod.UID] = struct{}{}
		f.place(n, pod)
	}
}

func (f *fitter) place(n *framework.NodeInfo, pod *v1.Pod) {
	// An error says that some affinity term does not parse: the pod counts without it, as in the scheduler's cache.
	info, _ := framework.NewPodInfo(pod)
	n.AddPodInfo(info)
	f.oracle.view.stale = true
	if len(info.GetRequiredAntiAffinityTerms()) > 0 || usesClaims(pod) {
		// Plugins that had nothing to do for other pods may have now.
		f.recent = nil
		return
	}
	f.recent = slices.DeleteFunc(f.recent, func(p *prefiltered) bool {
		if !p.status.IsSuccess() {
			return false
		}
		// The spread plugin's AddPod is made for preemption: it keeps two domains only and loses the minimum when
		// pods are added one after the other.
		if !p.state.GetSkipFilterPlugins().Has(names.PodTopologySpread) {
			return true
		}
		return !f.oracle.framework.RunPreFilterExtensionAddPod(f.ctx, p.state, p.pod, info, n).IsSuccess()
	})
}

func usesClaims(pod *v1.Pod) bool {
	if len(pod.Spec.ResourceClaims) > 0 {
		return true
	}
	for i := range pod.Spec.Volumes {
		if v := &pod.Spec.Volumes[i]; v.PersistentVolumeClaim != nil || v.Ephemeral != nil {
			return true
		}
	}
	return false
}

// Candidates implements plan.Fitter.
func (f *fitter) Candidates(nodes []plan.Candidate) [][]*v1.Pod {
	f.recent = nil
	f.oracle.view.dropCandidates()
	daemons := map[*v1.Pod]*framework.PodInfo{}
	out := make([][]*v1.Pod, len(nodes))
	for i, c := range nodes {
		n := framework.NewNodeInfo()
		n.SetNode(named(c.Node, c.Node.Name))
		for _, d := range c.Daemons {
			if !runsOn(d, n.Node()) {
				continue
			}
			info, ok := daemons[d]
			if !ok {
				info, _ = framework.NewPodInfo(d)
				daemons[d] = info
			}
			n.AddPodInfo(info)
			out[i] = append(out[i], d)
		}
		f.oracle.view.offer(n)
	}
	return out
}

// Open implements plan.Fitter.
func (f *fitter) Open(candidate, name string) {
	f.recent = nil
	n := f.oracle.view.get(candidate)
	if n == nil || !f.oracle.view.made[candidate] {
		return
	}
	n = n.SnapshotConcrete()
	n.SetNode(named(n.Node(), name))
	f.oracle.view.keep(n)
}

// named is the node under a name, which is its hostname as well.
func named(node *v1.Node, name string) *v1.Node {
	if node.Name == name && node.Labels[v1.LabelHostname] == name {
		return node
	}
	out := *node
	out.Name = name
	out.Labels = maps.Clone(node.Labels)
	if out.Labels == nil {
		out.Labels = map[string]string{}
	}
	out.Labels[v1.LabelHostname] = name
	return &out
}
