// SPDX-License-Identifier: Apache-2.0

package simtest

import (
	"context"
	"maps"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/profile"

	"github.com/jit-scheduler/jit-scheduler/plugins/kubescheduler"
	"github.com/jit-scheduler/jit-scheduler/plugins/nodeprovisioning"
)

// Options are what a test decides.
type Options struct {
	// Objects exist before the scheduler starts.
	Objects []runtime.Object
	// Client is the API server of an earlier Cluster: a restart. Objects are ignored then.
	Client *fake.Clientset
	// Logger gets what the scheduler logs; default: klog's.
	Logger *klog.Logger
	// Config is the text of a KubeSchedulerConfiguration; default: the built-in one.
	Config string
	// Provisioner makes what stands behind the plugin. It is called before informers start.
	Provisioner func(c *Cluster) nodeprovisioning.Provisioner
	// Prepare may change the scheduler before the adapter is attached.
	Prepare func(s *scheduler.Scheduler)
	// Registry has plugins beside ours.
	Registry frameworkruntime.Registry
}

// Cluster is a scheduler with its fake API server.
type Cluster struct {
	T *testing.T
	// Ctx ends when the cluster is stopped.
	Ctx       context.Context
	Client    *fake.Clientset
	Informers informers.SharedInformerFactory
	Scheduler *scheduler.Scheduler
	Adapter   *kubescheduler.Adapter
	Config    *config.KubeSchedulerConfiguration
	// Recorder publishes events as the scheduler does.
	Recorder events.EventRecorderLogger

	broadcaster events.EventBroadcaster
	cancel      context.CancelFunc
	running     sync.WaitGroup
	stopping    sync.Once
	mu          sync.Mutex
	version     int
}

// Start starts the scheduler and returns when its informers are synced. It is stopped at the end of the bubble.
func Start(t *testing.T, o Options) *Cluster {
	t.Helper()
	c := newCluster(t, o)
	if err := c.attach(o); err != nil {
		t.Fatal(err)
	}
	c.broadcaster.StartRecordingToSink(c.Ctx.Done())
	c.Informers.Start(c.Ctx.Done())
	c.Informers.WaitForCacheSync(c.Ctx.Done())
	if err := c.Scheduler.WaitForHandlersSync(c.Ctx); err != nil {
		t.Fatal(err)
	}
	c.running.Go(func() { c.Scheduler.Run(c.Ctx) })
	return c
}

// StartError gives the error of a scheduler that is refused at start, nil if it is not.
func StartError(t *testing.T, o Options) error {
	t.Helper()
	return newCluster(t, o).attach(o)
}

func newCluster(t *testing.T, o Options) *Cluster {
	t.Helper()
	c := &Cluster{T: t, Client: o.Client, Adapter: kubescheduler.New()}
	c.Ctx, c.cancel = context.WithCancel(context.Background())
	if o.Logger != nil {
		c.Ctx = klog.NewContext(c.Ctx, *o.Logger)
	}
	t.Cleanup(c.Stop)
	if c.Client == nil {
		c.Client = fake.NewClientset(o.Objects...)
		c.serve()
	}
	var err error
	if o.Config == "" {
		c.Config, err = kubescheduler.LoadConfig("")
	} else {
		c.Config, err = kubescheduler.DecodeConfig([]byte(o.Config))
	}
	if err != nil {
		t.Fatal(err)
	}
	c.Informers = scheduler.NewInformerFactory(c.Client, 0, nil)
	c.broadcaster = events.NewBroadcaster(&events.EventSinkImpl{Interface: c.Client.EventsV1()})
	c.Scheduler, err = scheduler.New(c.Ctx, c.Client, c.Informers, nil, profile.NewRecorderFactory(c.broadcaster),
		scheduler.WithComponentConfigVersion(c.Config.APIVersion),
		scheduler.WithProfiles(c.Config.Profiles...),
		scheduler.WithFrameworkOutOfTreeRegistry(c.registry(o)),
		scheduler.WithPodMaxInUnschedulablePodsDuration(5*time.Minute),
		scheduler.WithParallelism(1),
	)
	if err != nil {
		t.Fatal(err)
	}
	if o.Prepare != nil {
		o.Prepare(c.Scheduler)
	}
	for _, p := range c.Scheduler.Profiles {
		c.Recorder = p.EventRecorder()
	}
	return c
}

func (c *Cluster) registry(o Options) frameworkruntime.Registry {
	r := frameworkruntime.Registry{nodeprovisioning.Name: nodeprovisioning.New(c.Adapter)}
	maps.Copy(r, o.Registry)
	return r
}

func (c *Cluster) attach(o Options) error {
	return c.Adapter.Attach(c.Ctx, c.Scheduler, kubescheduler.Options{
		Provisioner: o.Provisioner(c),
		Profiles:    c.Config.Profiles,
		Registry:    c.registry(o),
	})
}

// Stop ends the scheduler as a crash does: whatever it had in mind is not done any more. A second time changes nothing.
func (c *Cluster) Stop() { c.stopping.Do(c.stop) }

func (c *Cluster) stop() {
	c.cancel()
	c.running.Wait()
	if c.broadcaster != nil {
		c.broadcaster.Shutdown()
	}
	if c.Informers != nil {
		c.Informers.Shutdown()
	}
}
