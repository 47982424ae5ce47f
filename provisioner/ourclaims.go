// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"context"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/klog/v2"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/jit-scheduler/jit-scheduler/provisioner/lifecycle"
)

// ourClaim is false for NodeClaims of other providers and of static NodePools: neither they nor their nodes and
// machines are touched. One whose NodePool is not known counts as not ours until it is (decidePool). mu is held.
func (p *Provisioner) ourClaim(claim *karpv1.NodeClaim) bool {
	ref, pool := claim.Spec.NodeClassRef, claim.Labels[karpv1.NodePoolLabelKey]
	st := p.pools[pool]
	_, known := p.state.Claim(claim.Name)
	delete(p.undecided, claim.Name)
	switch {
	case ref == nil || ref.Group != nodeClasses.Group || ref.Kind != "EC2NodeClass":
	case st != nil && st.pool.Spec.Replicas != nil:
	case st != nil || known || pool == "":
		return true
	case p.others[claim.Name] != claim.UID:
		p.undecided[claim.Name] = claim
		p.decideLater(pool)
	}
	if id := claim.Status.ProviderID; id != "" {
		p.foreign[id] = claim.Name
	}
	if p.undecided[claim.Name] == nil {
		p.others[claim.Name] = claim.UID
	}
	return false
}

// decideEvery is how often the API server is asked for a NodePool that claims name and the informer does not know.
const decideEvery = time.Second

// decideLater asks the API server for a pool until it is known, or known not to exist; mu is held.
func (p *Provisioner) decideLater(pool string) {
	if p.ctx == nil || p.deciding[pool] {
		return
	}
	p.deciding[pool] = true
	go p.decidePool(p.ctx, pool)
}

func (p *Provisioner) decidePool(ctx context.Context, pool string) {
	for {
		exists, err := p.poolExists(ctx, pool)
		p.mu.Lock()
		switch {
		case err != nil:
			klog.FromContext(ctx).V(2).Info("Looking for a NodePool", "nodePool", pool, "err", err)
		case !exists && p.pools[pool] == nil:
			p.takeUndecided(pool)
		}
		waiting := slices.ContainsFunc(slices.Collect(maps.Values(p.undecided)), func(c *karpv1.NodeClaim) bool {
			return c.Labels[karpv1.NodePoolLabelKey] == pool
		})
		if !waiting || ctx.Err() != nil {
			delete(p.deciding, pool)
			p.mu.Unlock()
			return
		}
		p.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-time.After(decideEvery):
		}
	}
}

// poolExists asks the API server: what the informer does not have may be about to arrive.
func (p *Provisioner) poolExists(ctx context.Context, name string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	list, err := p.Dynamic.Resource(nodePools).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String(),
	})
	if err != nil {
		return false, err
	}
	for i := range list.Items {
		if list.Items[i].GetName() == name {
			return true, nil
		}
	}
	return false, nil
}

// decide settles the claims that waited for this pool to be known; mu is held.
func (p *Provisioner) decide(pool string) {
	for _, name := range slices.Sorted(maps.Keys(p.undecided)) {
		if claim := p.undecided[name]; claim.Labels[karpv1.NodePoolLabelKey] == pool && p.ourClaim(claim) {
			p.takeClaim(claim)
		}
	}
}

// takeUndecided takes the claims of a pool that does not exist any more: somebody must see to their end. mu is held.
func (p *Provisioner) takeUndecided(pool string) {
	for _, name := range slices.Sorted(maps.Keys(p.undecided)) {
		if claim := p.undecided[name]; claim.Labels[karpv1.NodePoolLabelKey] == pool {
			delete(p.undecided, name)
			p.takeClaim(claim)
		}
	}
}

// takeClaim tells the state machine of a claim that is ours, and of its node if that was passed over; mu is held.
func (p *Provisioner) takeClaim(claim *karpv1.NodeClaim) {
	id := claim.Status.ProviderID
	_, passedOver := p.foreign[id]
	delete(p.foreign, id)
	p.applyLocked(lifecycle.ClaimSeen{Claim: claim})
	if passedOver && p.synced {
		for _, o := range p.Informers.Core().V1().Nodes().Informer().GetStore().List() {
			if n, ok := o.(*v1.Node); ok && n.Spec.ProviderID == id {
				p.applyLocked(lifecycle.NodeSeen{Node: n})
			}
		}
	}
	if c, ok := p.state.Claim(claim.Name); ok && c.NeedsRestore && claim.Spec.NodeClassRef != nil {
		if st := p.classes[claim.Spec.NodeClassRef.Name]; st != nil && st.resolved != nil {
			p.restoreClaims(st.resolved)
		}
	}
}
