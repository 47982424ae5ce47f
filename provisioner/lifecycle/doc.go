// SPDX-License-Identifier: Apache-2.0

// Package lifecycle is the state machine of NodeClaims and of the pods reserved on them.
//
// State.Apply(now, event) takes one fact and returns the actions that are due. It is pure: no clock, client, context,
// logger or randomness; the provisioner's event loop is its only caller, carries the actions out beside the
// scheduling thread and reports each outcome back as an event. Every action may be repeated: an action whose outcome
// is not reported within its deadline is issued again, and its effect must be the same.
//
// It is level-based. An event records facts; then every entity that it touched is reconciled, which compares the facts
// with what should be and issues what is missing, unless that is in flight, was answered just now, or backs off
// (flight.go). So an event that is told twice, late, or not at all changes when something happens, not what.
//
// The life of a claim, and where it is written down:
//
//	planned      AddPlannedNode, CreateClaim                      claim.go
//	launching    Launch, FindInstances; attempts and tokens       group.go, match.go
//	launched     UpdatePlannedNode, PatchClaim                    match.go, status.go
//	registered   RegisterNode with the hold, TagInstance          register.go, hold.go
//	initialized  InitializeNode, Requeue (paired), ReleaseHold    register.go, hold.go
//	empty        TaintNode, then DeleteClaim                      empty.go
//	ending       drain, Terminate, the finalizers                 end.go, orphan.go
//
// Pods are in ledger.go: a pod waits on at most one claim, is paired with its node at the handover, and leaves the
// ledger when it is bound. A claim that ends, for whatever reason, first gives its pods back.
//
// After a restart a claim is taken up where its object says it is (State.adopt); pods come back by being planned
// again, onto the same claims. testdata holds the stories, TestWorld the lives that nobody thought of.
package lifecycle
