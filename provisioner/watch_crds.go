// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"context"
	"fmt"
	"slices"
	"strings"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/jit-scheduler/jit-scheduler/provisioner/lifecycle"
)

// missingCRDs names the first watched kind that the API server does not serve, "" when all are there. An error says
// nothing about what is served.
func (p *Provisioner) missingCRDs() (string, error) {
	for _, gvr := range []schema.GroupVersionResource{nodePools, nodeClaims, nodeClasses} {
		list, err := p.Client.Discovery().ServerResourcesForGroupVersion(gvr.GroupVersion().String())
		switch {
		case err != nil && !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err):
			return "", fmt.Errorf("asking for %s: %w", gvr.GroupVersion(), err)
		case err != nil, !slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == gvr.Resource }):
			return gvr.Resource + "." + gvr.Group, nil
		}
	}
	return "", nil
}

// watchCRDs starts the informers of the three kinds and returns the NodeClaims' store, nil when ctx ended first.
func (p *Provisioner) watchCRDs(ctx context.Context) cache.Store {
	crds := dynamicinformer.NewDynamicSharedInformerFactory(p.Dynamic, 0)
	p.crds = crds
	classes, pools, claims := crds.ForResource(nodeClasses), crds.ForResource(nodePools), crds.ForResource(nodeClaims)
	var synced []cache.InformerSynced
	for _, w := range []struct {
		informer cache.SharedIndexInformer
		seen     func(any)
		gone     func(any)
	}{
		{classes.Informer(), p.classSeen, p.classGone},
		{pools.Informer(), p.poolSeen, p.poolGone},
	} {
		reg, err := w.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: w.seen, UpdateFunc: func(_, o any) { w.seen(o) }, DeleteFunc: w.gone,
		})
		if err != nil {
			klog.FromContext(ctx).Error(err, "Watching Karpenter's objects")
			return nil
		}
		synced = append(synced, reg.HasSynced)
	}
	informer := claims.Informer()
	crds.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), append(synced, informer.HasSynced)...) {
		return nil
	}
	// From here on every change arrives by itself; what was listed arrives once more, which changes nothing.
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: p.claimSeen, UpdateFunc: func(_, o any) { p.claimSeen(o) }, DeleteFunc: p.claimGone,
	}); err != nil {
		klog.FromContext(ctx).Error(err, "Watching NodeClaims")
		return nil
	}
	return informer.GetStore()
}

// allClaims are the NodeClaims of a store, by name.
func allClaims(store cache.Store) []*karpv1.NodeClaim {
	var all []*karpv1.NodeClaim
	for _, o := range store.List() {
		if c, _, err := decode[karpv1.NodeClaim](o); err == nil {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b *karpv1.NodeClaim) int { return strings.Compare(a.Name, b.Name) })
	return all
}

func (p *Provisioner) claimSeen(o any) {
	claim, _, err := decode[karpv1.NodeClaim](o)
	if err != nil {
		klog.Background().Error(err, "Ignoring a NodeClaim")
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ourClaim(claim) {
		p.takeClaim(claim)
	}
}

func (p *Provisioner) claimGone(o any) {
	claim, _, err := decode[karpv1.NodeClaim](o)
	if err != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.foreign, claim.Status.ProviderID)
	delete(p.others, claim.Name)
	delete(p.undecided, claim.Name)
	p.applyLocked(lifecycle.ClaimGone{Name: claim.Name})
	p.changedLocked() // its share of the limits is free
	if ref := claim.Spec.NodeClassRef; ref != nil {
		if st := p.classes[ref.Name]; st != nil && !st.class.DeletionTimestamp.IsZero() {
			st.now() // it may have been the last one that the class waited for
		}
	}
	p.statusDue(claim.Labels[karpv1.NodePoolLabelKey])
}

func (p *Provisioner) poolSeen(o any) {
	pool, unknown, err := decode[karpv1.NodePool](o)
	if err != nil {
		klog.Background().Error(err, "Ignoring a NodePool")
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	st := p.pools[pool.Name]
	if st == nil {
		st = &poolState{}
		p.pools[pool.Name] = st
	}
	if st.pool == nil || st.pool.Generation != pool.Generation || st.pool.UID != pool.UID ||
		st.pool.Annotations[extendedAnnotation] != pool.Annotations[extendedAnnotation] {
		p.changedLocked()
	}
	st.pool, st.unknown = pool, unknown
	p.applyLocked(lifecycle.PoolSeen{Pool: pool})
	p.decide(pool.Name)
	p.statusDue(pool.Name)
}

func (p *Provisioner) poolGone(o any) {
	pool, _, err := decode[karpv1.NodePool](o)
	if err != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.pools, pool.Name)
	p.applyLocked(lifecycle.PoolGone{Name: pool.Name})
}

func (p *Provisioner) classSeen(o any) {
	class, unknown, err := decode[awsv1.EC2NodeClass](o)
	if err != nil {
		klog.Background().Error(err, "Ignoring an EC2NodeClass")
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	st := p.classes[class.Name]
	if st == nil {
		st = &classState{due: make(chan struct{}, 1)}
		p.classes[class.Name] = st
		if p.ctx != nil && p.ctx.Err() == nil {
			var ctx context.Context
			ctx, st.stop = context.WithCancel(p.ctx)
			go p.resolveClass(ctx, class.Name, st.due)
		}
	}
	fresh := st.class == nil || st.class.UID != class.UID || st.class.Generation != class.Generation || st.class.DeletionTimestamp.IsZero() != class.DeletionTimestamp.IsZero()
	st.class, st.unknown = class, unknown
	if fresh {
		st.now()
	}
}

func (p *Provisioner) classGone(o any) {
	class, _, err := decode[awsv1.EC2NodeClass](o)
	if err != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if st := p.classes[class.Name]; st != nil && st.stop != nil {
		st.stop()
	}
	delete(p.classes, class.Name)
	delete(p.sized, class.Name)
	for name := range p.pools {
		p.statusDue(name)
	}
	p.changedLocked()
}
