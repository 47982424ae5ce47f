// SPDX-License-Identifier: Apache-2.0

// Package lifecycle is the state machine of NodeClaims and of the pods reserved on them.
//
// State.Apply(now, event) takes one fact and returns the actions that are due. It is pure: no clock, client, context,
// logger or randomness; the provisioner's event loop is its only caller, carries the actions out beside the
// scheduling thread and reports each outcome back as an event. Every action may be repeated: an action whose outcome
// is not reported within its deadline is issued again, and its effect must be the same.
package lifecycle
