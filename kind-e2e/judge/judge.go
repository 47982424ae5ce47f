// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
)

// Config is what a Judge needs.
type Config struct {
	Kube    kubernetes.Interface // required; see Clients
	Dynamic dynamic.Interface    // required; see Clients
	// FakeURL is the base URL of the fake AWS endpoint; empty if there is none,
	// in which case everything about instances and calls goes unjudged.
	FakeURL string
	// SchedulerName is the scheduler whose pods are judged; required.
	SchedulerName string
	Rules         Rules
	// PollInterval is how often the fake is read; 250 ms if 0.
	PollInterval time.Duration
}

// Judge watches a run. Its methods may be called from any goroutine.
type Judge struct {
	config  Config
	streams []*stream
	poller  *poller // nil without a fake
	stop    context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	state   *State
	version int // counts updates, for WaitFor
	goals   []Goal
	rules   Rules
}

// Start begins to watch and returns once every watch is open and the fake has
// been read, so nothing that happens afterwards is missed. NodeClaims may not be
// served yet. The judge looks until ctx ends or Stop is called; what fails to
// begin within ctx or 30 s is an error.
func Start(ctx context.Context, config Config) (*Judge, error) {
	if config.Kube == nil || config.Dynamic == nil || config.SchedulerName == "" {
		return nil, errors.New("starting the judge: Kube, Dynamic and SchedulerName are required")
	}
	if err := config.Rules.validate(); err != nil {
		return nil, fmt.Errorf("starting the judge: %w", err)
	}
	if config.PollInterval == 0 {
		config.PollInterval = 250 * time.Millisecond
	}
	watching, stop := context.WithCancel(ctx)
	j := &Judge{config: config, stop: stop, state: NewState(config.SchedulerName), rules: config.Rules}
	starting, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	j.streams = streams(config.Kube, config.Dynamic, j)
	for _, s := range j.streams {
		j.running.Go(func() { s.run(watching) })
	}
	for _, s := range j.streams {
		select {
		case <-s.up:
		case <-starting.Done():
			j.Stop()
			return nil, fmt.Errorf("starting the judge: watching %s: %w%s", s.name, starting.Err(), j.gapText())
		}
	}
	j.update(func(s *State) { s.gaps = nil }) // what went before the first list is nobody's
	if config.FakeURL != "" {
		j.poller = &poller{fake: newFakeClient(config.FakeURL), judge: j, every: config.PollInterval}
		if err := errors.Join(j.poller.fixed(starting), j.poller.once(starting)); err != nil {
			j.Stop()
			return nil, fmt.Errorf("starting the judge: %w", err)
		}
		j.running.Go(func() { j.poller.run(watching) })
	}
	return j, nil
}

// Stop ends the watches and waits for them. Report may still be called.
func (j *Judge) Stop() {
	j.stop()
	j.running.Wait()
}

// Mark names this moment; the report has figures for each mark and between them.
func (j *Judge) Mark(name string) {
	now := time.Now()
	j.update(func(s *State) { s.Mark(name, now) })
}

// View is what is true now.
func (j *Judge) View() *View {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.state.View(time.Now())
}

// SetRules replaces the rules that the next Report judges by.
func (j *Judge) SetRules(rules Rules) error {
	if err := rules.validate(); err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.rules = rules
	return nil
}

// AddGoal adds a figure to be compared with its goal in the report.
func (j *Judge) AddGoal(goal Goal) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.goals = append(j.goals, goal)
}

// AddAudit adds the events of an API server's audit log to what is judged.
func (j *Judge) AddAudit(log io.Reader) error {
	events, err := ReadAudit(log)
	if err != nil {
		return err
	}
	j.update(func(s *State) { s.audit = append(s.audit, events...) })
	return nil
}

// AddMetrics adds a scheduler's metrics, as scraped, to what is judged.
func (j *Judge) AddMetrics(text string) {
	j.update(func(s *State) { s.metrics = append(s.metrics, text) })
}

// Figures measures the selected pods, and everything else, up to now.
func (j *Judge) Figures(sel PodSelector) Figures {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.state.Figures(time.Now(), sel)
}

// WaitFor returns when done is true of the view; it is asked at most every
// 20 ms, and only after something changed. When ctx ends first, the error says
// what the view was.
func (j *Judge) WaitFor(ctx context.Context, done func(*View) bool) error {
	for asked := -1; ; {
		j.mu.Lock()
		version := j.version
		var view *View
		if version != asked {
			view = j.state.View(time.Now())
		}
		j.mu.Unlock()
		if view != nil && done(view) {
			return nil
		}
		asked = version
		if !sleep(ctx, 20*time.Millisecond) {
			return fmt.Errorf("waiting: %w; %s", context.Cause(ctx), j.View().summary(j.config.SchedulerName))
		}
	}
}

func (j *Judge) update(change func(*State)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	change(j.state)
	j.version++
}

// observe implements sink.
func (j *Judge) observe(o Observation) { j.update(func(s *State) { s.Observe(o) }) }

// gap implements sink.
func (j *Judge) gap(source, reason string) {
	now := time.Now()
	j.update(func(s *State) { s.ObserveGap(now, source, reason) })
}

func (j *Judge) gapText() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var text strings.Builder
	for _, gap := range j.state.gaps {
		text.WriteString("; " + gap.reason)
	}
	return text.String()
}
