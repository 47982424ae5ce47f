// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
	"github.com/jit-scheduler/jit-scheduler/provisioner/lifecycle"
)

const (
	sweepEvery = 30 * time.Second
	// templateUnused is how long a launch template outlives its last use; with sweepEvery it stays within the two
	// minutes that users are promised.
	templateUnused = time.Minute
	// orphanAge spares machines whose NodeClaim may not be known yet: a launch answers within a minute or two.
	orphanAge = 3 * time.Minute
)

// sweep ends what nobody needs: machines without a NodeClaim, and unused launch templates.
func (p *Provisioner) sweep(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := p.sweepOnce(ctx); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).V(2).Info("Sweeping", "err", err)
		}
	}
}

func (p *Provisioner) sweepOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	p.mu.Lock()
	synced := p.synced
	p.mu.Unlock()
	if !synced || p.Ready() != nil {
		return nil
	}
	asked := time.Now()
	instances, err := p.Cloud.List(ctx)
	if err != nil {
		return err
	}
	errs := []error{p.reportGone(ctx, p.unlisted(instances, asked))}
	for _, inst := range p.orphans(instances) {
		if err := p.Leading(); err != nil {
			return err
		}
		klog.FromContext(ctx).Info("Terminating an instance without a NodeClaim", "providerID", inst.ProviderID)
		if err := p.Cloud.Terminate(ctx, inst.ProviderID); !errors.Is(err, cloudprovider.ErrInstanceNotFound) {
			errs = append(errs, err)
		}
	}
	if err := p.Leading(); err != nil {
		return err
	}
	return errors.Join(append(errs, p.Cloud.Sweep(ctx, templateUnused))...)
}

// unlisted are the claims' machines that the cloud does not list although their launch is long past.
func (p *Provisioner) unlisted(instances []cloudprovider.Instance, asked time.Time) []string {
	live := sets.New[string]()
	for i := range instances {
		live.Insert(instances[i].ProviderID)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []string
	for c := range p.state.Claims() {
		if c.Launched && !live.Has(c.ProviderID) && asked.Sub(c.LaunchedAt) > orphanAge {
			out = append(out, c.ProviderID)
		}
	}
	return out
}

// reportGone tells the state machine of machines that ended without our doing. Each is asked for by its id before: a
// list lacks what has lost its tags, or what this region's copy of the truth does not show yet, and to believe it would
// take the node from under running pods.
func (p *Provisioner) reportGone(ctx context.Context, unlisted []string) error {
	var errs []error
	for _, id := range unlisted {
		_, err := p.Cloud.Get(ctx, id)
		if errors.Is(err, cloudprovider.ErrInstanceNotFound) {
			p.apply(lifecycle.InstanceGone{ProviderID: id})
			continue
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// orphans are instances that no NodeClaim has or is waiting for.
func (p *Provisioner) orphans(instances []cloudprovider.Instance) []cloudprovider.Instance {
	p.mu.Lock()
	defer p.mu.Unlock()
	known, groups := sets.New[string](), sets.New[string]()
	for c := range p.state.Claims() {
		known.Insert(c.ProviderID)
		if !c.Launched {
			groups.Insert(c.Group)
		}
	}
	var out []cloudprovider.Instance
	for _, inst := range instances {
		if _, foreign := p.foreign[inst.ProviderID]; foreign || inst.State == "shutting-down" {
			continue
		}
		if !known.Has(inst.ProviderID) && !groups.Has(inst.Tags[lifecycle.GroupAnnotation]) && time.Since(inst.LaunchTime) > orphanAge {
			out = append(out, inst)
		}
	}
	return out
}
