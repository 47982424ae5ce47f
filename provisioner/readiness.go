// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"context"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

const (
	checkEvery   = time.Minute
	checkRetry   = 5 * time.Second
	checkTimeout = 20 * time.Second
)

// readiness keeps the last answer of the cloud's Check.
type readiness struct {
	mu  sync.Mutex
	err error
}

// Ready is nil while the cloud answers and no Karpenter leads; otherwise the error names the endpoint and what is wrong,
// or the lease and its holder. Scheduling onto existing nodes goes on meanwhile.
func (p *Provisioner) Ready() error {
	p.ready.mu.Lock()
	defer p.ready.mu.Unlock()
	if p.ready.err != nil {
		return p.ready.err
	}
	return p.karpenter.blocks()
}

// WatchCloud keeps Ready true to the facts until ctx ends; a standby runs it as well. Without it, nothing is launched:
// it is what learns that no Karpenter leads.
func (p *Provisioner) WatchCloud(ctx context.Context) {
	logger := klog.FromContext(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	watching.Go(func() { p.karpenter.watch(ctx, p.Client) })
	for {
		cctx, cancel := context.WithTimeout(ctx, checkTimeout)
		err := p.Cloud.Check(cctx)
		cancel()
		p.ready.mu.Lock()
		was := p.ready.err
		p.ready.err = err
		p.ready.mu.Unlock()
		switch {
		case err != nil && ctx.Err() == nil && (was == nil || was.Error() != err.Error()):
			logger.Error(err, "The cloud's check failed: not ready, launches may fail until it succeeds")
		case err == nil && was != nil:
			logger.Info("The cloud's check succeeds again")
			p.changed()
		}
		wait := checkEvery
		if err != nil {
			wait = checkRetry
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}
