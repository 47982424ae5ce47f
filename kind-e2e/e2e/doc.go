// SPDX-License-Identifier: Apache-2.0

// Package e2e runs the product, or Karpenter in its place, on a real control plane and a fake AWS endpoint, as a user
// would run it, and lets the judge say whether what it promises holds.
//
// An Env is one such world: cluster, endpoint, judge, and the program under test as a process under the identity and
// the RBAC that manifests/ ships. Cases drive it with kubectl-like calls and the endpoint's control API. The package
// decides nothing about right and wrong itself, and imports nothing of the product. kind-e2e/cmd/{demo,e2e,compare}
// call it.
package e2e
