// SPDX-License-Identifier: Apache-2.0

package ec2

import "context"

// gate lets one caller through at a time. Unlike a mutex it may be held during a call to AWS: whoever waits still
// ends with its context.
type gate chan struct{}

func newGate() gate { return make(gate, 1) }

func (g gate) enter(ctx context.Context) error {
	select {
	case g <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (g gate) tryEnter() bool {
	select {
	case g <- struct{}{}:
		return true
	default:
		return false
	}
}

func (g gate) leave() { <-g }
