// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"context"
	"errors"
	"fmt"
	"maps"

	v1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
	"github.com/jit-scheduler/jit-scheduler/provisioner/lifecycle"
	"github.com/jit-scheduler/jit-scheduler/provisioner/scheduling"
)

// unregistered keeps everything off a machine from its first heartbeat until its NodeClaim's labels and taints are on
// the Node.
var unregistered = karpv1.UnregisteredNoExecuteTaint

// launch calls the cloud for a group of identical claims.
func (p *Provisioner) launch(ctx context.Context, a lifecycle.Launch) ([]lifecycle.Event, error) {
	req, err := p.launchRequest(a)
	if err != nil {
		return []lifecycle.Event{lifecycle.LaunchFailed{
			Group: a.Group, Attempt: a.Attempt, Failure: cloudprovider.NodeClassNotReady, Untried: true, Message: err.Error(),
		}}, nil
	}
	if err := p.Leading(); err != nil {
		return nil, err
	}
	result, err := p.Cloud.Launch(ctx, req)
	if err != nil {
		if lost := p.Leading(); lost != nil {
			return nil, lost // the next leader's to find out
		}
		failed := lifecycle.LaunchFailed{Group: a.Group, Attempt: a.Attempt, Failure: cloudprovider.Unknown, Message: err.Error()}
		if launchErr, ok := errors.AsType[*cloudprovider.LaunchError](err); ok {
			failed.Failure, failed.Failures, failed.Reason = launchErr.Failure, launchErr.Failures, launchErr.Reason
			failed.Untried, failed.Spent, failed.Message = launchErr.Untried, launchErr.Spent, launchErr.Err.Error()
		}
		p.launchRefused(a, failed)
		return []lifecycle.Event{failed}, nil
	}
	p.launchAccepted(a, req.NodeClass.Name)
	return []lifecycle.Event{lifecycle.Launched{
		Group: a.Group, Attempt: a.Attempt, Instances: result.Instances, Failures: result.Failures,
	}}, nil
}

// launchRequest is built from the NodeClaims and their class alone, so that a restarted process asks for the same.
func (p *Provisioner) launchRequest(a lifecycle.Launch) (cloudprovider.LaunchRequest, error) {
	first := a.Claims[0]
	if first.Spec.NodeClassRef == nil {
		return cloudprovider.LaunchRequest{}, fmt.Errorf("NodeClaim %s names no EC2NodeClass", first.Name)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	st := p.classes[first.Spec.NodeClassRef.Name]
	if st == nil || st.resolved == nil {
		return cloudprovider.LaunchRequest{}, fmt.Errorf("EC2NodeClass %q is not ready", first.Spec.NodeClassRef.Name)
	}
	req := cloudprovider.LaunchRequest{
		Token:     fmt.Sprintf("%s-%d", a.Group, a.Attempt),
		Group:     a.Group,
		Count:     len(a.Claims),
		NodePool:  first.Labels[karpv1.NodePoolLabelKey],
		NodeClass: st.resolved,
		Options:   a.Options,
		MinValues: lifecycle.MinValues(first),
		Labels:    launchLabels(first),
		Taints:    append(append([]v1.Taint{unregistered}, first.Spec.Taints...), first.Spec.StartupTaints...),
	}
	for _, c := range a.Claims {
		req.Claims = append(req.Claims, c.Name)
		req.Requests = scheduling.Max(req.Requests, c.Spec.Resources.Requests)
	}
	return req, nil
}

// launchLabels are the claim's labels but those that say which machine it got: a launch that was recorded in part must
// not make another request of its replay.
func launchLabels(claim *karpv1.NodeClaim) map[string]string {
	labels := maps.Clone(claim.Labels)
	maps.DeleteFunc(labels, func(key, _ string) bool { return key != karpv1.NodePoolLabelKey && karpv1.WellKnownLabels.Has(key) })
	return labels
}

// findInstances asks what a group has launched. An error is no answer: "none" would have the group launched again.
func (p *Provisioner) findInstances(ctx context.Context, a lifecycle.FindInstances) ([]lifecycle.Event, error) {
	found, err := p.Cloud.FindLaunched(ctx, a.Group)
	if err != nil {
		return nil, fmt.Errorf("looking for the machines of a launch: %w", err)
	}
	return []lifecycle.Event{lifecycle.Found{Group: a.Group, Instances: found}}, nil
}

// terminate ends an instance; one that is gone is as good.
func (p *Provisioner) terminate(ctx context.Context, a lifecycle.Terminate) ([]lifecycle.Event, error) {
	if err := p.Leading(); err != nil {
		return nil, err
	}
	err := p.Cloud.Terminate(ctx, a.ProviderID)
	if errors.Is(err, cloudprovider.ErrInstanceNotFound) {
		return []lifecycle.Event{lifecycle.Done{Key: a.Key()}, lifecycle.InstanceGone{ProviderID: a.ProviderID}}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("terminating: %w", err)
	}
	return nil, nil
}

// awaitTermination asks once whether the instance is gone; the state machine repeats it.
func (p *Provisioner) awaitTermination(ctx context.Context, a lifecycle.AwaitTermination) ([]lifecycle.Event, error) {
	inst, err := p.Cloud.Get(ctx, a.ProviderID)
	if errors.Is(err, cloudprovider.ErrInstanceNotFound) || err == nil && inst.State == "terminated" {
		return []lifecycle.Event{lifecycle.Done{Key: a.Key()}, lifecycle.InstanceGone{ProviderID: a.ProviderID}}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("looking for the instance: %w", err)
	}
	return nil, fmt.Errorf("instance is %s", inst.State)
}
