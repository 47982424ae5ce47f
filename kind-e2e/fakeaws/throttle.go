// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"strings"
	"time"
)

// bucket is a token bucket that refills with time.
type bucket struct {
	tokens float64
	filled time.Time
}

// take takes n tokens if there are as many.
func (b *bucket) take(now time.Time, limit Rate, n float64) bool {
	b.tokens = min(limit.Burst, b.tokens+now.Sub(b.filled).Seconds()*limit.PerSecond)
	b.filled = now
	if b.tokens < n {
		return false
	}
	b.tokens -= n
	return true
}

// Rate is a token bucket: its size and how many tokens it gets back a second.
type Rate struct {
	Burst     float64 `json:"burst"`
	PerSecond float64 `json:"perSecond"`
}

// unfiltered and resources are added to an action's name for its further buckets: that of calls that read everything at
// once, and that of instances instead of calls.
const (
	unfiltered = "/unfiltered"
	resources  = "/resources"
)

// documentedRates are EC2's documented buckets of actions that have their own; see rateOf for the others.
var documentedRates = map[string]Rate{
	"CreateTags":                     {100, 10},
	"RunInstances":                   {5, 2},
	"TerminateInstances":             {100, 5},
	"TerminateInstances" + resources: {1000, 20},
}

var (
	readRate       = Rate{100, 20}
	unfilteredRate = Rate{50, 10}
	writeRate      = Rate{50, 5}
)

// rateOf is the bucket of that name: as the settings say, else as EC2 documents it. Every action has its own, per account
// and region.
func (s *Settings) rateOf(name string) Rate {
	if rate, ok := s.Rates[name]; ok {
		return rate
	}
	if rate, ok := documentedRates[name]; ok {
		return rate
	}
	switch {
	case strings.HasSuffix(name, unfiltered):
		return unfilteredRate
	case strings.HasPrefix(name, "Describe"):
		return readRate
	}
	return writeRate
}

// Rates returns the bucket of every EC2 action, whether calls are held to it or not.
func (s *Server) Rates() map[string]Rate {
	settings, rates := s.Settings(), map[string]Rate{}
	for name := range actions {
		if action, ok := strings.CutPrefix(name, "ec2/"); ok {
			rates[action] = settings.rateOf(action)
		}
	}
	return rates
}

// admit takes the tokens of an EC2 call; it reports false if there are too few.
func (s *Server) admit(r *request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.settings.Throttle || r.service != "ec2" {
		return true
	}
	name := r.action
	if strings.HasPrefix(name, "Describe") && unfilteredCall(r.form) {
		name += unfiltered
	}
	if !s.takeTokens(name, 1) {
		return false
	}
	if r.action == "TerminateInstances" {
		return s.takeTokens(r.action+resources, float64(len(r.form.list("InstanceId"))))
	}
	return true
}

func (s *Server) takeTokens(name string, n float64) bool {
	limit, now := s.settings.rateOf(name), time.Now()
	b := s.buckets[name]
	if b == nil {
		b = &bucket{tokens: limit.Burst, filled: now}
		s.buckets[name] = b
	}
	return b.take(now, limit, n)
}

// unfilteredCall says whether a call asks for everything in one reply.
func unfilteredCall(f form) bool {
	for key := range f {
		if key != "DryRun" {
			return false
		}
	}
	return true
}
