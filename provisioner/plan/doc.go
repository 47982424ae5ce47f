// SPDX-License-Identifier: Apache-2.0

// Package plan decides which NodeClaims to open, or to join, for the pods that no ready node can take.
//
// Plan is a pure function of a Snapshot: no clock, client, context, logger or randomness. Whether a pod fits a node
// is never decided here: the Fitter answers with the profile's own Filter plugins. The provisioner calls Plan under
// its lock, on the scheduling thread, so cost must grow with classes × types, not with pods.
package plan
