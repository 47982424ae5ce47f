// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkplugins "k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/jit-scheduler/jit-scheduler/plugins/nodeprovisioning"
	"github.com/jit-scheduler/jit-scheduler/provisioner/plan"
)

// oracle is one profile's PreFilter and Filter plugins, in instances of their own over a view of their own. It serves
// one Fitter at a time.
type oracle struct {
	adapter   *Adapter
	framework framework.Framework
	view      *view
}

// newOracles makes an oracle per profile. Planned nodes have no CSINode yet: attach limits are not known there.
func newOracles(ctx context.Context, a *Adapter, sched *scheduler.Scheduler, o Options) (map[string]*oracle, error) {
	args := map[string][]config.PluginConfig{}
	for i := range o.Profiles {
		args[o.Profiles[i].SchedulerName] = o.Profiles[i].PluginConfig
	}
	oracles := map[string]*oracle{}
	for name, real := range sched.Profiles {
		or := &oracle{adapter: a, view: &view{SharedLister: real.SnapshotSharedLister()}}
		registry := frameworkplugins.NewInTreeRegistry()
		for plugin, factory := range o.Registry {
			if plugin != nodeprovisioning.Name {
				if err := registry.Register(plugin, factory); err != nil {
					return nil, err
				}
			}
		}
		if err := registry.Register(nodeprovisioning.Name, or.admission); err != nil {
			return nil, err
		}
		var err error
		if or.framework, err = or.newFramework(ctx, registry, real, args[name]); err != nil {
			return nil, fmt.Errorf("profile %q: %w", name, err)
		}
		or.framework.SetPodNominator(sched.SchedulingQueue)
		or.framework.SetPodActivator(sched.SchedulingQueue)
		oracles[name] = or
	}
	return oracles, nil
}

func (or *oracle) newFramework(ctx context.Context, registry frameworkruntime.Registry, real framework.Framework, args []config.PluginConfig) (framework.Framework, error) {
	all := real.ListPlugins()
	p := &config.KubeSchedulerProfile{
		// The name is the metrics' profile label: planning must not count as scheduling.
		SchedulerName: real.ProfileName() + "#plan",
		Plugins: &config.Plugins{
			QueueSort: all.QueueSort,
			PreFilter: without(all.PreFilter, nodeprovisioning.Name),
			Filter:    all.Filter,
			Bind:      all.Bind,
		},
		PluginConfig: args,
	}
	return frameworkruntime.NewFramework(ctx, registry, p,
		frameworkruntime.WithClientSet(real.ClientSet()),
		frameworkruntime.WithKubeConfig(real.KubeConfig()),
		frameworkruntime.WithEventRecorder(real.EventRecorder()),
		frameworkruntime.WithInformerFactory(real.SharedInformerFactory()),
		frameworkruntime.WithSharedDRAManager(real.SharedDRAManager()),
		frameworkruntime.WithSharedCSIManager(real.SharedCSIManager()),
		frameworkruntime.WithSnapshotSharedLister(or.view),
		frameworkruntime.WithPodGroupManager(real.PodGroupManager()),
		frameworkruntime.WithParallelism(1),
		frameworkruntime.WithLogger(klog.FromContext(ctx)),
	)
}

func without(s config.PluginSet, name string) config.PluginSet {
	out := config.PluginSet{}
	for _, p := range s.Enabled {
		if p.Name != name {
			out.Enabled = append(out.Enabled, p)
		}
	}
	return out
}

// NewFitter implements provisioner.Scheduler.
func (a *Adapter) NewFitter(profile string) (plan.Fitter, error) {
	or, ok := a.profiles[profile]
	if !ok {
		return nil, fmt.Errorf("profile %q is not one of ours", profile)
	}
	or.view.reset(a.world.refresh())
	return &fitter{oracle: or, ctx: klog.NewContext(a.ctx, logr.Discard())}, nil
}

// admission stands in for NodeProvisioning in the oracle: planned nodes and candidates are what the planner asks
// about, real nodes are as in a cycle of a pod that is not paired.
type admission struct{ oracle *oracle }

var _ fwk.FilterPlugin = admission{}

func (or *oracle) admission(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) {
	return admission{oracle: or}, nil
}

// Name implements fwk.Plugin.
func (admission) Name() string { return nodeprovisioning.Name }

// Filter implements fwk.FilterPlugin.
func (ad admission) Filter(ctx context.Context, _ fwk.CycleState, pod *v1.Pod, n fwk.NodeInfo) *fwk.Status {
	node := n.Node()
	if ad.oracle.view.made[node.Name] || nodeprovisioning.IsPlanned(node) {
		return nil
	}
	return nodeprovisioning.Admits(klog.FromContext(ctx), pod, node, "", ad.oracle.adapter.lastGates())
}
