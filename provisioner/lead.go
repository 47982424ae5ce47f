// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/jit-scheduler/jit-scheduler/provisioner/lifecycle"
)

// syncTimeout bounds how long a new leader waits for the claims before it schedules onto what is there.
const syncTimeout = 30 * time.Second

// Lead starts the event loop and rebuilds claims from the API server, unless and as soon as no Karpenter leads. It
// returns when every NodeClaim is known, or when the CRDs are absent (they are picked up when they appear), or when a
// Karpenter is in charge. Until the claims are known nothing is planned, so a slow start can delay a launch but not
// double it.
func (p *Provisioner) Lead(ctx context.Context) {
	p.mu.Lock()
	was := p.led
	p.led = true
	p.mu.Unlock()
	if was {
		return
	}
	go p.hints.run(ctx, p)
	decided := make(chan struct{})
	go p.alternate(ctx, sync.OnceFunc(func() { close(decided) }))
	select {
	case <-decided:
	case <-ctx.Done():
	case <-time.After(syncTimeout):
		klog.FromContext(ctx).Info("Starting without NodeClaims: they are not readable yet; nothing is launched until they are")
	}
}

// provision starts what provisioning consists of and returns when all NodeClaims are known, or cannot be. It ends with
// ctx.
func (p *Provisioner) provision(ctx context.Context) {
	go p.run(ctx)
	go p.sweep(ctx)
	if cache.WaitForCacheSync(ctx.Done(), p.pods.HasSynced, p.nodesSynced(), p.daemonSetsSynced()) {
		p.awaitCRDs(ctx)
	}
}

// awaitCRDs waits for Karpenter's CRDs, then for their objects, and feeds everything known into the state. It returns
// early when they are known to be absent.
func (p *Provisioner) awaitCRDs(ctx context.Context) {
	if missing := p.crdsMissing(ctx); missing != "" && ctx.Err() == nil {
		klog.FromContext(ctx).Info("WARNING: scheduling only: a CRD is not served; it is picked up when it appears", "missing", missing)
		p.term.Go(func() { p.awaitCRDsLater(ctx) })
		return
	}
	p.rebuild(ctx)
}

const (
	// crdsRetry is between two questions that the API server did not answer, crdsEvery between two that it did.
	crdsRetry = time.Second
	crdsEvery = 5 * time.Second
)

// crdsMissing asks until there is an answer; what goes wrong is said once.
func (p *Provisioner) crdsMissing(ctx context.Context) string {
	said := ""
	for {
		missing, err := p.missingCRDs()
		if err == nil {
			return missing
		}
		if err.Error() != said {
			said = err.Error()
			klog.FromContext(ctx).Error(err, "Cannot find out whether Karpenter's CRDs are served, will retry", "every", crdsRetry)
		}
		select {
		case <-ctx.Done():
			return ""
		case <-time.After(crdsRetry):
		}
	}
}

func (p *Provisioner) awaitCRDsLater(ctx context.Context) {
	tick := time.NewTicker(crdsEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if p.crdsMissing(ctx) == "" {
				p.rebuild(ctx)
				return
			}
		}
	}
}

// rebuild starts the CRD informers and, when they have synced, replays the world in a fixed order: claims, nodes,
// pods. Restores of claims that have not been launched follow when their NodeClass is resolved.
func (p *Provisioner) rebuild(ctx context.Context) {
	store := p.watchCRDs(ctx)
	if store == nil {
		return
	}
	// Listed while no event can be applied: what is listed earlier could undo an event that came meanwhile.
	p.mu.Lock()
	defer p.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	nodes, err := p.Informers.Core().V1().Nodes().Lister().List(labels.Everything())
	if err != nil {
		klog.FromContext(ctx).Error(err, "Listing nodes")
		return
	}
	claims := allClaims(store)
	var evs []lifecycle.Event
	for _, c := range claims {
		if p.ourClaim(c) {
			evs = append(evs, lifecycle.ClaimSeen{Claim: c})
		}
	}
	for _, n := range nodes {
		if !p.isForeign(n) {
			evs = append(evs, lifecycle.NodeSeen{Node: n})
		}
	}
	for _, o := range p.pods.GetStore().List() {
		if ev, ok := podEvent(o); ok {
			evs = append(evs, ev)
		}
	}
	p.applyLocked(evs...)
	p.applyLocked(lifecycle.Synced{})
	for _, st := range p.classes {
		if st.resolved != nil {
			p.restoreClaims(st.resolved)
		}
	}
	p.synced = true
	p.epoch++
	klog.FromContext(ctx).Info("Ledger rebuilt", "nodeClaims", len(claims), "nodes", len(nodes))
}
