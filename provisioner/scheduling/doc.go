// SPDX-License-Identifier: Apache-2.0

// Package scheduling is the arithmetic under planner and provisioner: requirements over label keys (as NodePools,
// NodeClaims and pods state them) and resource lists. It decides nothing about placement: which node takes a pod is
// answered by the scheduler's own Filter plugins; requirements here choose what to buy and explain what was refused.
//
// Everything is pure: no clock, client, context, logger or randomness. Values are immutable once made.
package scheduling
