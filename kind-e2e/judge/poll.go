// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"context"
	"time"
)

// poller reads the fake into the judge's state.
type poller struct {
	fake  *fakeClient
	judge *Judge
	every time.Duration
}

// run polls until ctx ends. A failed poll loses nothing, as the fake keeps its
// log: only the last one, of Judge.Report, must succeed.
func (p *poller) run(ctx context.Context) {
	for sleep(ctx, p.every) {
		_ = p.once(ctx)
	}
}

// once reads calls, instances, launch templates and queues.
func (p *poller) once(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, fakeTimeout)
	defer cancel()
	p.judge.mu.Lock()
	since := p.judge.state.callsSince()
	p.judge.mu.Unlock()
	// Instances first: each then has its CreateFleet among the calls.
	instances, err := p.fake.instances(ctx)
	if err != nil {
		return err
	}
	calls, err := p.fake.calls(ctx, since)
	if err != nil {
		return err
	}
	templates, err := p.fake.launchTemplates(ctx)
	if err != nil {
		return err
	}
	queues, err := p.fake.queues(ctx)
	if err != nil {
		return err
	}
	p.judge.update(func(s *State) {
		s.ObserveQueues(queues)
		s.ObserveInstances(instances)
		s.ObserveCalls(calls)
		s.ObserveLaunchTemplates(templates)
	})
	return nil
}

// fixed reads what does not change: prices and the actions' token buckets.
func (p *poller) fixed(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, fakeTimeout)
	defer cancel()
	prices, err := p.fake.prices(ctx)
	if err != nil {
		return err
	}
	rates, err := p.fake.rates(ctx)
	if err != nil {
		return err
	}
	p.judge.update(func(s *State) { s.ObservePrices(prices); s.ObserveRates(rates) })
	return nil
}
