// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/fakeaws/machine"
)

const (
	kubeletRetry = time.Second
	apiTimeout   = 10 * time.Second
)

// live is the life of a machine until it is powered off or the server closes.
func (s *Server) live(ctx context.Context, in *instance) {
	settings := s.Settings()
	if !sleep(ctx, settings.runningAfter()) {
		return
	}
	fault, boots := s.allowed(ctx, in, "Boot")
	if fault.machine.Die {
		s.log.Info("machine dies by a fault", slog.String("instance", in.id))
		s.mu.Lock()
		defer s.mu.Unlock()
		s.terminate(in, stateReason{Code: "Client.InternalError", Message: "Client.InternalError: Client error on launch"})
		return
	}
	if !boots {
		return
	}
	s.mu.Lock()
	if in.state == pending {
		now := time.Now()
		in.runningAt = &now
		s.enter(in, running)
	}
	s.mu.Unlock()
	join := in.launchedAt.Add(settings.BootDelay.Duration + settings.JoinDelay.Duration)
	if !sleep(ctx, time.Until(join)) {
		return
	}
	fault, joins := s.allowed(ctx, in, "Join")
	if !joins {
		return
	}
	if in.bootErr != nil {
		s.log.Warn("machine joins nothing", slog.String("instance", in.id), slog.Any("err", in.bootErr))
		return
	}
	if s.opts.NodeClient != nil {
		s.joinAs(in, &fault.machine)
		s.runKubelet(ctx, in, settings)
	}
}

// allowed applies the faults on what machines do: it waits, and says whether to go on.
func (s *Server) allowed(ctx context.Context, in *instance, action string) (effect, bool) {
	s.mu.Lock()
	fault := s.fireLocked(in.nodeSubject(action))
	s.mu.Unlock()
	if !sleep(ctx, fault.delay) {
		return fault, false
	}
	if fault.err != nil || fault.drop {
		s.log.Info("machine fails by a fault", slog.String("instance", in.id), slog.String("action", action))
		return fault, false
	}
	return fault, true
}

// joinAs changes what the machine registers as.
func (s *Server) joinAs(in *instance, fault *MachineFault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	joins := *in.machine
	if fault.WithoutLabels {
		joins.Labels = nil
	}
	if fault.WithoutTaints {
		joins.Taints = nil
	}
	joins.OtherProviderID = fault.ProviderID
	if deviation, err := shares(fault.Allocatable); err == nil { // validated with the rule
		joins.Allocatable = machine.Deviate(joins.Allocatable, deviation)
	}
	in.machine = &joins
}

func (in *instance) cluster() ClusterInfo {
	return ClusterInfo{Name: in.config.ClusterName, Endpoint: in.config.Endpoint, CA: in.config.CA}
}

func (s *Server) runKubelet(ctx context.Context, in *instance, settings Settings) {
	var client kubernetes.Interface
	name := in.machine.PrivateDNSName
	if !s.retry(ctx, in, "connecting", func() (err error) {
		client, err = s.opts.NodeClient(ctx, in.cluster(), name)
		return err
	}) {
		return
	}
	if !s.retry(ctx, in, "joining", func() error { return in.machine.Join(ctx, client) }) {
		return
	}
	s.mu.Lock()
	in.nodeName = name
	s.mu.Unlock()
	s.log.Info("machine joined", slog.String("instance", in.id), slog.String("node", name), slog.Duration("after", time.Since(in.launchedAt)))
	if !sleep(ctx, settings.ReadyDelay.Duration) {
		return
	}
	if _, readies := s.allowed(ctx, in, "Ready"); !readies {
		return
	}
	if !s.retry(ctx, in, "reporting ready", func() error { return in.machine.Ready(ctx, client) }) {
		return
	}
	if settings.NodeLifecycle {
		s.retry(ctx, in, "removing the not-ready taint", func() error { return removeNotReadyTaint(ctx, client, name) })
	}
	s.heartbeat(ctx, in, client, settings.LeasePeriod.Duration)
}

// retry repeats f until it succeeds; false means that the machine was powered off.
func (s *Server) retry(ctx context.Context, in *instance, what string, f func() error) bool {
	for {
		err := f()
		if err == nil {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		s.log.Warn("machine retries", slog.String("instance", in.id), slog.String("what", what), slog.Any("err", err))
		if !sleep(ctx, kubeletRetry) {
			return false
		}
	}
}

func (s *Server) heartbeat(ctx context.Context, in *instance, client kubernetes.Interface, period time.Duration) {
	for period > 0 {
		if err := in.machine.RenewLease(ctx, client); err != nil && ctx.Err() == nil {
			s.log.Warn("heartbeat failed", slog.String("instance", in.id), slog.Any("err", err))
		}
		if !sleep(ctx, period) {
			return
		}
	}
}

// removeNotReadyTaint is what the node lifecycle controller does when a node becomes ready.
func removeNotReadyTaint(ctx context.Context, client kubernetes.Interface, name string) error {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading node %s: %w", name, err)
	}
	taints := slices.DeleteFunc(slices.Clone(node.Spec.Taints), func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeNotReady })
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": node.ResourceVersion},
		"spec":     map[string]any{"taints": taints},
	})
	if err != nil {
		return fmt.Errorf("encoding the taints of node %s: %w", name, err)
	}
	if _, err := client.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("removing the not-ready taint of node %s: %w", name, err)
	}
	return nil
}

// cleanNode deletes the Node of a terminated instance, as the cloud controller manager does.
func (s *Server) cleanNode(in *instance, settings Settings) {
	s.mu.Lock()
	name, providerID := in.nodeName, ""
	if in.machine != nil {
		providerID = in.machine.ProviderID()
	}
	s.mu.Unlock()
	if name == "" || !settings.CloudControllerDeletes || !sleep(s.ctx, settings.CloudControllerDelay.Duration) {
		return
	}
	s.retry(s.ctx, in, "deleting the node", func() error { return s.deleteNode(in, name, providerID) })
}

func (s *Server) deleteNode(in *instance, name, providerID string) error {
	ctx, cancel := context.WithTimeout(s.ctx, apiTimeout)
	defer cancel()
	client, err := s.cloudController(ctx, in.cluster())
	if err != nil {
		return err
	}
	node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || (err == nil && node.Spec.ProviderID != providerID) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading node %s: %w", name, err)
	}
	if node.DeletionTimestamp != nil {
		return nil
	}
	err = client.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &node.UID}})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting node %s: %w", name, err)
	}
	return nil
}

func (s *Server) cloudController(ctx context.Context, cluster ClusterInfo) (kubernetes.Interface, error) {
	if s.opts.CloudControllerClient != nil {
		return s.opts.CloudControllerClient(ctx, cluster)
	}
	if s.opts.NodeClient == nil {
		return nil, errors.New("no client for the cloud controller")
	}
	return s.opts.NodeClient(ctx, cluster, "")
}

func quantityText(quantity resource.Quantity, name corev1.ResourceName) string {
	if name == corev1.ResourceCPU {
		return fmt.Sprintf("%dm", quantity.MilliValue())
	}
	return quantity.String()
}
