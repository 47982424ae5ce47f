// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	goruntime "runtime"
	"sync/atomic"
	"time"

	apifilters "k8s.io/apiserver/pkg/endpoints/filters"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	genericfilters "k8s.io/apiserver/pkg/server/filters"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/apiserver/pkg/server/routes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/component-base/configz"
	"k8s.io/component-base/logs"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/metrics/prometheus/slis"
	"k8s.io/kubernetes/pkg/scheduler/metrics/resources"
)

// shutdownTimeout is how long open requests may take after the end.
const shutdownTimeout = 5 * time.Second

// serve starts the HTTPS server in place of kube-scheduler's and returns what stops it.
func (s *server) serve(ctx context.Context) (func(), error) {
	secure := s.config.SecureServing
	if secure == nil {
		return func() {}, nil
	}
	s.config.SecureServing = nil
	quit := make(chan struct{})
	stopped, _, err := secure.Serve(s.authorized(s.endpoints(ctx)), shutdownTimeout, quit)
	if err != nil {
		return nil, fmt.Errorf("starting the secure server: %w", err)
	}
	return func() {
		close(quit)
		<-stopped
	}, nil
}

// endpoints are kube-scheduler's, with readiness extended by the provisioner's.
func (s *server) endpoints(ctx context.Context) http.Handler {
	var live, ready []healthz.HealthChecker
	if le := s.config.LeaderElection; le != nil {
		live, ready = append(live, le.WatchDog), append(ready, le.WatchDog)
	}
	ready = append(ready, healthz.NewShutdownHealthz(ctx.Done()), s.handlersSynced(ctx),
		healthz.NamedCheck("provisioner", func(*http.Request) error { return s.provisioner.Ready() }))

	m := mux.NewPathRecorderMux(name)
	healthz.InstallHandler(m, live...)
	healthz.InstallLivezHandler(m, live...)
	healthz.InstallReadyzHandler(m, ready...)
	configz.InstallHandler(m)
	m.Handle("/metrics", legacyregistry.HandlerWithReset())
	perPod := resources.Handler(s.config.InformerFactory.Core().V1().Pods().Lister())
	m.HandleFunc("/metrics/resources", func(w http.ResponseWriter, r *http.Request) {
		if s.leading() == nil { // as in kube-scheduler, the leader alone answers
			perPod.ServeHTTP(w, r)
		}
	})
	slis.SLIMetricsWithReset{}.Install(m)
	if s.config.ComponentConfig.EnableProfiling {
		routes.Profiling{}.Install(m)
		if s.config.ComponentConfig.EnableContentionProfiling {
			goruntime.SetBlockProfileRate(1)
		}
		routes.DebugFlags{}.Install(m, "v", routes.StringFlagPutHandler(logs.GlogSetter))
	}
	return m
}

// handlersSynced fails until the scheduler has seen every object of its first lists.
func (s *server) handlersSynced(ctx context.Context) healthz.HealthChecker {
	var synced atomic.Bool
	go func() {
		if s.scheduler.WaitForHandlersSync(ctx) == nil {
			synced.Store(true)
		}
	}()
	return healthz.NamedCheck("sched-handler-sync", func(*http.Request) error {
		if !synced.Load() {
			return errors.New("handlers are not fully synchronized")
		}
		return nil
	})
}

// authorized is kube-scheduler's chain of filters.
func (s *server) authorized(h http.Handler) http.Handler {
	info := &apirequest.RequestInfoFactory{}
	h = apifilters.WithAuthorization(h, s.config.Authorization.Authorizer, scheme.Codecs)
	h = apifilters.WithAuthentication(h, s.config.Authentication.Authenticator, apifilters.Unauthorized(scheme.Codecs), nil, nil)
	h = apifilters.WithRequestInfo(h, info)
	h = apifilters.WithCacheControl(h)
	h = genericfilters.WithHTTPLogging(h)
	return genericfilters.WithPanicRecovery(h, info)
}
