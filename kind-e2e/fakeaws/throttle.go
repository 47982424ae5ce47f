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

type rate struct{ burst, perSecond float64 }

// rates are AWS's documented request rates by action; the others are by kind.
var rates = map[string]rate{
	"RunInstances":       {5, 2},
	"TerminateInstances": {100, 5},
	"CreateTags":         {100, 10},
}

var (
	readRate  = rate{100, 20}
	writeRate = rate{50, 5}
)

// admit takes a token for an EC2 call. Calls that read share a bucket, and so do calls that write.
func (s *Server) admit(r *request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.settings.Throttle || r.service != "ec2" {
		return true
	}
	name, limit := r.action, rates[r.action]
	switch {
	case limit.burst > 0:
	case strings.HasPrefix(r.action, "Describe"):
		name, limit = "read", readRate
	default:
		name, limit = "write", writeRate
	}
	now := time.Now()
	b := s.buckets[name]
	if b == nil {
		b = &bucket{tokens: limit.burst, filled: now}
		s.buckets[name] = b
	}
	b.tokens = min(limit.burst, b.tokens+now.Sub(b.filled).Seconds()*limit.perSecond)
	b.filled = now
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}
