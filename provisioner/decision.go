// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"context"

	"github.com/jit-scheduler/jit-scheduler/provisioner/lifecycle"
)

// Gate overrides what a Node object says about who may use the node.
type Gate = lifecycle.Gate

// The gates, see lifecycle.
const (
	Closed   = lifecycle.Closed
	Released = lifecycle.Released
)

// Reservation is the ledger's answer for one pod. At most one field is set.
type Reservation struct {
	// NodeClaim is the claim whose planned node the pod is to be parked on when it is popped.
	NodeClaim string
	// Node is the real node that the pod is paired with since its handover.
	Node string
}

// Outcome is what Provision decided for the pod it was asked about.
type Outcome int

const (
	// Nominated: the pod is reserved on an incoming NodeClaim.
	Nominated Outcome = iota
	// Refused: new capacity cannot or must not help; preemption gets its turn.
	Refused
	// Retry: ready room was found meanwhile, or the ledger changed: the pod is activated and cycles again.
	Retry
)

// Decision is the answer of Provision.
type Decision struct {
	Outcome Outcome
	// NodeClaim is set when Nominated.
	NodeClaim string
	// Reason is stable and CamelCase; Message is one sentence of at most 250 characters.
	Reason, Message string
	// Launch waits for the launch's answer and returns its error; nil if there is nothing to wait for.
	// The plugin calls it for at most its launchWait.
	Launch func(ctx context.Context) error
}
