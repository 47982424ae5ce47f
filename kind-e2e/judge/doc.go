// SPDX-License-Identifier: Apache-2.0

// Package judge decides whether a run on a cluster was right, and how fast and
// how dear it was. It watches Pods, Nodes, NodeClaims, Events and
// PersistentVolumeClaims itself, reads the fake AWS's call log and instances,
// and yields violations of the named invariants and figures.
//
// It has a pure core and a thin shell. State is the core: it takes timestamped
// observations and judges them, with no clock, client or goroutine. Every API
// object comes with its resourceVersion, which one etcd counts across all
// kinds, so State replays the observations of all watches in the order in
// which they were true: "bound before Ready" is decided by revision and not by
// which watch was quicker. Judge is the shell: watches without gaps (a gap is
// itself a violation, as a judge that looked away proves nothing), polling of
// the fake, marks, waiting.
//
// The judge never changes the cluster and knows nothing of the product: it must
// not import it, nor Karpenter. The e2e runner, the demo and cmd/judge call it.
package judge
