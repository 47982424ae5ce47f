// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	listersv1 "k8s.io/client-go/listers/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/jit-scheduler/jit-scheduler/plugins/nodeprovisioning"
	"github.com/jit-scheduler/jit-scheduler/provisioner"
)

// Adapter implements provisioner.Scheduler towards the provisioner and nodeprovisioning.Provisioner towards the
// plugin (it passes calls on and listens). Make it with New, give it to the plugin factory, then Attach it.
type Adapter struct {
	nodeprovisioning.Provisioner

	ctx    context.Context
	logger klog.Logger
	sched  *scheduler.Scheduler
	cache  *trackedCache
	pods   listersv1.PodLister

	// lead calls Provisioner.Lead once, under leading, which ends with leadership.
	lead       sync.Once
	leading    context.Context
	endLeading context.CancelFunc
	pop        func(klog.Logger) (framework.QueuedEntityInfo, error)

	gates    atomic.Pointer[map[string]provisioner.Gate]
	profiles map[string]*oracle
	world    *world

	mu sync.Mutex
	// planned has the last object that the cache was given, per node name.
	planned map[string]*v1.Node
	// parked has the object that the cache has assumed, per pod.
	parked map[types.UID]*v1.Pod
	// waiting has the unbound pods of our profiles as the informer last told, parked ones included.
	waiting map[types.UID]*v1.Pod
}

var (
	_ provisioner.Scheduler        = &Adapter{}
	_ nodeprovisioning.Provisioner = &Adapter{}
)

// New makes an Adapter that is not attached yet; plugin factories may already hold it.
func New() *Adapter {
	return &Adapter{
		planned: map[string]*v1.Node{},
		parked:  map[types.UID]*v1.Pod{},
		waiting: map[types.UID]*v1.Pod{},
	}
}

// Options are what Attach needs beside the scheduler itself.
type Options struct {
	Provisioner nodeprovisioning.Provisioner
	// Profiles are the defaulted profiles of the component config: the plugin arguments are taken from them.
	Profiles []config.KubeSchedulerProfile
	// Registry has the out-of-tree plugins that the scheduler was made with; NodeProvisioning is ignored.
	Registry frameworkruntime.Registry
}

// Attach checks the profiles and wires the adapter into a scheduler that is not running yet and whose informers have
// not started. ctx ends with the process.
func (a *Adapter) Attach(ctx context.Context, sched *scheduler.Scheduler, o Options) error {
	if o.Provisioner == nil {
		return errors.New("attaching to the scheduler: no provisioner")
	}
	if err := CheckProfiles(sched.Profiles); err != nil {
		return err
	}
	a.Provisioner, a.sched, a.ctx, a.logger = o.Provisioner, sched, ctx, klog.FromContext(ctx)
	a.leading, a.endLeading = context.WithCancel(ctx)

	a.cache = newTrackedCache(sched.Cache)
	sched.Cache = a.cache
	a.world = newWorld(a.cache)
	var err error
	if a.profiles, err = newOracles(ctx, a, sched, o); err != nil {
		return fmt.Errorf("making the filter oracle: %w", err)
	}

	a.pop, sched.NextEntity = sched.NextEntity, a.nextEntity
	sched.SchedulePod = a.schedulePod(sched.SchedulePod)
	for i, e := range sched.Extenders {
		sched.Extenders[i] = &extender{Extender: e, adapter: a}
	}
	for _, p := range sched.Profiles {
		informer := p.SharedInformerFactory().Core().V1().Pods()
		a.pods = informer.Lister()
		_, err := informer.Informer().AddEventHandler(a.podHandler())
		if err != nil {
			return fmt.Errorf("watching pods: %w", err)
		}
		break
	}
	return nil
}

// Gates passes the question on and remembers the answer for Fitters, which must not ask.
func (a *Adapter) Gates() map[string]provisioner.Gate {
	g := a.Provisioner.Gates()
	a.gates.Store(&g)
	return g
}

// Close ends the context that Lead got: leadership is over.
func (a *Adapter) Close() error {
	if a.endLeading != nil {
		a.endLeading()
	}
	return nil
}

// lastGates is what the last scheduling cycle was told.
func (a *Adapter) lastGates() map[string]provisioner.Gate {
	if g := a.gates.Load(); g != nil {
		return *g
	}
	return nil
}
