// SPDX-License-Identifier: Apache-2.0

// Package provisioner is the shell around the pure core: it owns the claims and the ledger (package lifecycle), takes
// snapshots for the planner (package plan), and carries actions out against the API server, the cloud and the
// scheduler. Its methods on the scheduling thread decide and never do I/O; everything slow runs under a context that
// ends with leadership. It imports neither the framework nor a cloud: plugins/nodeprovisioning calls it, cmd wires it.
package provisioner
