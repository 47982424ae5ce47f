// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"testing"

	"github.com/jit-scheduler/jit-scheduler/provisioner/lifecycle"
)

// Who was refused because a pool is blocked is planned again when it opens.
func TestAPoolThatOpensIsAChange(t *testing.T) {
	t.Parallel()
	p, _ := newShell(t, nil)
	before := p.epoch
	p.carryOut([]lifecycle.Action{lifecycle.PoolOpen{Pool: "default"}})
	if p.epoch == before {
		t.Error("the epoch is what it was")
	}
}

// Without parked pods nothing is asked; how long an offer took bounds how often there is one.
func TestOfferingIsCheapWithoutParkedPods(t *testing.T) {
	t.Parallel()
	p, _ := newShell(t, nil)
	p.offering, p.offerTook = true, -1
	p.offer()
	if p.offering || p.offerTook != -1 {
		t.Errorf("offering %t, took %v", p.offering, p.offerTook)
	}
}
