// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	schedulerconfig "k8s.io/kubernetes/cmd/kube-scheduler/app/config"
	"k8s.io/kubernetes/pkg/scheduler"
)

// guardClients puts the lease check under every client of the scheduler and the provisioner, right before the wire:
// bindings, status patches and events of a leader that was stopped and has not noticed yet must not pass either. The
// lock's own client stays free. It returns nil without leader election.
func guardClients(ctx context.Context, cc *schedulerconfig.CompletedConfig) (*leaseGuard, error) {
	le := cc.LeaderElection
	if le == nil {
		return nil, nil
	}
	plain := cc.KubeConfig
	guard := newLeaseGuard(nil, le.RenewDeadline)
	cfg := rest.CopyConfig(plain)
	cfg.Wrap(guard.transport)
	client, err := kubernetes.NewForConfig(rest.AddUserAgent(cfg, "scheduler"))
	if err != nil {
		return nil, fmt.Errorf("making the scheduler's client: %w", err)
	}
	eventClient, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("making the event client: %w", err)
	}
	cc.KubeConfig, cc.Client = cfg, client
	// It outlives ctx: the lock and the scheduler still record events while they end.
	cc.EventBroadcaster = events.NewEventBroadcasterAdapterWithContext(context.WithoutCancel(ctx), eventClient)
	cc.InformerFactory = scheduler.NewInformerFactory(client, 0, nil)
	// The lock's events must go to the new broadcaster.
	c := cc.ComponentConfig.LeaderElection
	guard.Interface, err = resourcelock.NewFromKubeconfig(c.ResourceLock, c.ResourceNamespace, c.ResourceName,
		resourcelock.ResourceLockConfig{Identity: le.Lock.Identity(), EventRecorder: cc.EventBroadcaster.DeprecatedNewLegacyRecorder(name)},
		plain, c.RenewDeadline.Duration)
	if err != nil {
		return nil, fmt.Errorf("making the resource lock: %w", err)
	}
	le.Lock, le.Name = guard, name
	return guard, nil
}

// transport refuses what would change anything while the lease is not ours for certain.
func (g *leaseGuard) transport(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		switch r.Method {
		case http.MethodGet, http.MethodHead, http.MethodOptions:
			return next.RoundTrip(r)
		}
		if err := g.Leading(); err != nil {
			if r.Body != nil {
				// A RoundTripper closes the body on errors too.
				_ = r.Body.Close()
			}
			return nil, fmt.Errorf("not sending %s %s: %w", r.Method, r.URL.Path, err)
		}
		return next.RoundTrip(r)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
