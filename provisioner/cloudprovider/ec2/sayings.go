// SPDX-License-Identifier: Apache-2.0

package ec2

import "sync"

// sayings remember what was last logged about a subject: a fault is logged when it begins, when it becomes another one,
// and when it ends, however often it is met.
type sayings struct {
	mu   sync.Mutex
	last map[string]string
}

// news is true if text differs from what was said about the subject before; nothing was said at first.
func (s *sayings) news(subject, text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last[subject] == text {
		return false
	}
	if s.last == nil {
		s.last = map[string]string{}
	}
	s.last[subject] = text
	return true
}
