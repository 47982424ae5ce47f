// SPDX-License-Identifier: Apache-2.0

package lifecycle

import "time"

// Config are the machine's durations. Zero fields take the defaults of New.
type Config struct {
	// LaunchTimeout (5 min) and RegistrationTimeout (15 min, from the launch) are Karpenter's: then the claim goes
	// and its pods are planned again.
	LaunchTimeout       time.Duration
	RegistrationTimeout time.Duration
	// HoldTimeout (15 min, from the registration) is how long pods wait for a registered node to become ready.
	// The machine stays, as Karpenter has no such timeout; the pods are planned again.
	HoldTimeout time.Duration
	// PairTimeout (5 min, from the handover) is how long a paired pod may keep its room without being bound.
	PairTimeout time.Duration
	// RestoreTime (30 s) is how long a claim found at start waits for pods to be planned onto it again.
	RestoreTime time.Duration
	// EmptySettle (2 s) is how long a tainted node must stay empty before it is deleted.
	EmptySettle time.Duration
	// FindFor (20 s, must exceed the cloud's describe lag) is how long instances are looked for, each FindEvery
	// (3 s), before a launch of unknown outcome counts as not made.
	FindFor, FindEvery time.Duration
	// ActionTimeout (30 s) and LaunchActionTimeout (90 s) are when an unanswered action is issued again; the
	// shell's own deadlines must be shorter.
	ActionTimeout, LaunchActionTimeout time.Duration
	// BackoffMin (500 ms) doubles with every failure up to BackoffMax (30 s).
	BackoffMin, BackoffMax time.Duration
	// PollEvery (2 s) is between two looks at a drain or a termination.
	PollEvery time.Duration
	// BlockMin (10 s) to BlockMax (5 min) is how long a pool whose launches are refused opens no claims.
	BlockMin, BlockMax time.Duration
	// RefusedFor (45 s) is how long a launch is tried again, RetryMin (1 s) doubling between tries, while the cloud
	// refuses what its class asks for: somebody may be repairing it, but other pools may serve the pods as well.
	RefusedFor, RetryMin time.Duration
	// MaxAttempts (10) launches are made for one claim, each with what the last one left of its options.
	MaxAttempts int
	// Price is USD per hour of an offering, for the message of a removal; nil, or false: not known.
	Price func(instanceType, zone, capacityType string) (float64, bool)
}

func (c Config) withDefaults() Config {
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&c.LaunchTimeout, 5 * time.Minute},
		{&c.RegistrationTimeout, 15 * time.Minute},
		{&c.HoldTimeout, 15 * time.Minute},
		{&c.PairTimeout, 5 * time.Minute},
		{&c.RestoreTime, 30 * time.Second},
		{&c.EmptySettle, 2 * time.Second},
		{&c.FindFor, 20 * time.Second},
		{&c.FindEvery, 3 * time.Second},
		{&c.ActionTimeout, 30 * time.Second},
		{&c.LaunchActionTimeout, 90 * time.Second},
		{&c.BackoffMin, 500 * time.Millisecond},
		{&c.BackoffMax, 30 * time.Second},
		{&c.PollEvery, 2 * time.Second},
		{&c.RefusedFor, 45 * time.Second},
		{&c.RetryMin, time.Second},
		{&c.BlockMin, 10 * time.Second},
		{&c.BlockMax, 5 * time.Minute},
	} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if c.MaxAttempts == 0 {
		c.MaxAttempts = 10
	}
	return c
}
