// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	schedulerconfig "k8s.io/kubernetes/cmd/kube-scheduler/app/config"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/jit-scheduler/jit-scheduler/plugins/kubescheduler"
	"github.com/jit-scheduler/jit-scheduler/plugins/nodeprovisioning"
	"github.com/jit-scheduler/jit-scheduler/provisioner"
	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider/ec2"
)

const (
	name = "jit-scheduler"
	// The provisioner's own client: a burst of creates must not wait behind the scheduler's status patches.
	provisionerQPS, provisionerBurst = 300, 600
)

// server is a wired process that has not started anything.
type server struct {
	config      *schedulerconfig.CompletedConfig
	scheduler   *scheduler.Scheduler
	provisioner *provisioner.Provisioner
	// leading is nil while the lease is ours for certain.
	leading func() error
}

// setup makes the scheduler and what is embedded in it. Feature gates are settled before.
func setup(ctx context.Context, opts *options.Options, args nodeprovisioning.NodeProvisioningArgs) (*server, error) {
	cc, err := completeConfig(ctx, opts)
	if err != nil {
		return nil, err
	}
	leading := func() error { return nil }
	guard, err := guardClients(ctx, cc)
	if err != nil {
		return nil, err
	}
	if guard != nil {
		leading = guard.Leading
	}
	adapter := kubescheduler.New()
	registry := frameworkruntime.Registry{nodeprovisioning.Name: nodeprovisioning.New(adapter)}
	sched, err := newScheduler(ctx, opts, cc, registry)
	if err != nil {
		return nil, err
	}
	p, err := newProvisioner(ctx, cc, sched, args, leading)
	if err != nil {
		return nil, err
	}
	p.SetScheduler(adapter)
	err = adapter.Attach(ctx, sched, kubescheduler.Options{Provisioner: p, Profiles: cc.ComponentConfig.Profiles, Registry: registry})
	if err != nil {
		return nil, err
	}
	return &server{config: cc, scheduler: sched, provisioner: p, leading: leading}, nil
}

// completeConfig is kube-scheduler's own, but for the built-in configuration.
func completeConfig(ctx context.Context, opts *options.Options) (*schedulerconfig.CompletedConfig, error) {
	cfg, err := kubescheduler.LoadConfig(opts.ConfigFile)
	if err != nil {
		return nil, err
	}
	opts.ComponentConfig = cfg
	if errs := opts.Validate(); len(errs) > 0 {
		return nil, utilerrors.NewAggregate(errs)
	}
	c, err := opts.Config(context.WithoutCancel(ctx)) // its event broadcaster outlives ctx: events are recorded to the very end
	if err != nil {
		return nil, err
	}
	cc := c.Complete()
	return &cc, nil
}

func newScheduler(ctx context.Context, opts *options.Options, cc *schedulerconfig.CompletedConfig, registry frameworkruntime.Registry) (*scheduler.Scheduler, error) {
	var completed []config.KubeSchedulerProfile
	cfg := &cc.ComponentConfig
	sched, err := scheduler.New(ctx, cc.Client, cc.InformerFactory, cc.DynInformerFactory,
		func(profile string) events.EventRecorderLogger { return cc.EventBroadcaster.NewRecorder(profile) },
		scheduler.WithComponentConfigVersion(cfg.APIVersion),
		scheduler.WithKubeConfig(cc.KubeConfig),
		scheduler.WithProfiles(cfg.Profiles...),
		scheduler.WithPercentageOfNodesToScore(cfg.PercentageOfNodesToScore),
		scheduler.WithFrameworkOutOfTreeRegistry(registry),
		scheduler.WithPodMaxBackoffSeconds(cfg.PodMaxBackoffSeconds),
		scheduler.WithPodInitialBackoffSeconds(cfg.PodInitialBackoffSeconds),
		scheduler.WithPodMaxInUnschedulablePodsDuration(cc.PodMaxInUnschedulablePodsDuration),
		scheduler.WithExtenders(cfg.Extenders...),
		scheduler.WithParallelism(cfg.Parallelism),
		scheduler.WithBuildFrameworkCapturer(func(p config.KubeSchedulerProfile) { completed = append(completed, p) }),
	)
	if err != nil {
		return nil, fmt.Errorf("making the scheduler: %w", err)
	}
	return sched, options.LogOrWriteConfig(klog.FromContext(ctx), opts.WriteConfigTo, cfg, completed)
}

func newProvisioner(ctx context.Context, cc *schedulerconfig.CompletedConfig, sched *scheduler.Scheduler, args nodeprovisioning.NodeProvisioningArgs, leading func() error) (*provisioner.Provisioner, error) {
	kc := rest.AddUserAgent(rest.CopyConfig(cc.KubeConfig), "provisioner")
	kc.QPS, kc.Burst = provisionerQPS, provisionerBurst
	client, err := kubernetes.NewForConfig(kc)
	if err != nil {
		return nil, fmt.Errorf("making the provisioner's client: %w", err)
	}
	dyn, err := dynamic.NewForConfig(kc)
	if err != nil {
		return nil, fmt.Errorf("making the provisioner's dynamic client: %w", err)
	}
	cloud, err := newCloud(ctx, args, leading)
	if err != nil {
		return nil, err
	}
	return provisioner.New(provisioner.Options{
		Client: client, Dynamic: dyn, Informers: cc.InformerFactory, Cloud: cloud, ClusterName: args.ClusterName,
		Recorder:       cc.EventBroadcaster.NewRecorder(name),
		SchedulerNames: slices.Sorted(maps.Keys(sched.Profiles)),
		Leading:        leading,
	})
}

// newCloud makes the AWS adapter; it does no I/O but what reading the SDK's configuration and the price file needs.
func newCloud(ctx context.Context, args nodeprovisioning.NodeProvisioningArgs, leading func() error) (*ec2.Provider, error) {
	if args.Region != "" {
		// The SDK's loader has to know it: some credential sources are regional.
		if err := os.Setenv("AWS_REGION", args.Region); err != nil {
			return nil, err
		}
	}
	cfg, err := ec2.LoadConfig(ctx)
	if err != nil {
		return nil, err
	}
	if args.Endpoint != "" {
		cfg.BaseEndpoint = aws.String(args.Endpoint)
	}
	prices, err := loadPrices(args.PriceFile)
	if err != nil {
		return nil, err
	}
	cloud := ec2.New(ec2.Options{
		ClusterName: args.ClusterName, AWS: cfg, ClusterEndpoint: args.ClusterEndpoint, IsolatedVPC: args.IsolatedVPC, Prices: prices,
		Leading: leading,
	})
	if args.PriceFile != "" {
		go watchPrices(ctx, args.PriceFile, prices, cloud)
	}
	return cloud, nil
}

// run serves, watches the cloud and schedules until ctx ends or leadership is lost (which ends the process).
func (s *server) run(ctx context.Context) error {
	stop, err := s.serve(ctx)
	if err != nil {
		return err
	}
	defer stop()
	go s.provisioner.WatchCloud(ctx)
	return app.Run(ctx, s.config, s.scheduler)
}
