// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"math/rand/v2"
	"time"
)

const (
	firstRetry = time.Minute
	lastRetry  = 30 * time.Minute
)

// schedule is when something is to be read again. The zero value is due.
type schedule struct {
	next     time.Time
	failures int
}

func (s *schedule) due(now time.Time) bool { return !now.Before(s.next) }

// read: good for ttl, or a little less, so that the replicas of many clusters do not ask at the same moment for ever.
func (s *schedule) read(now time.Time, ttl time.Duration) {
	s.failures, s.next = 0, now.Add(jitter(ttl))
}

// failed: tried again soon, then less and less often.
func (s *schedule) failed(now time.Time) {
	wait := min(firstRetry<<min(s.failures, 10), lastRetry)
	s.failures++
	s.next = now.Add(jitter(wait))
}

// jitter is between 90 % and 100 % of d.
func jitter(d time.Duration) time.Duration {
	return d - rand.N(d/10+1) //nolint:gosec // nothing is kept secret by it
}
