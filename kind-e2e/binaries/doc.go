// SPDX-License-Identifier: Apache-2.0

// Package binaries builds the programs that a local control plane is made of,
// from Go modules alone, into the ignored folder .bin of the repository.
//
// Each program is built in a small generated module (.bin/build/<name>): a copy
// of a released go.mod, so that it gets the dependency versions that its authors
// released it with, and nothing of this repository's module graph. The released
// go.mod is the program's own, except that etcd and KWOK use Kubernetes': their
// dependencies are then compiled once for all. The
// result is .bin/<version>/<program>, where version is the program's own, next
// to a stamp of everything that went into it; what is there with the right
// stamp is not built again.
//
// Callers: kind-e2e/cmd/binaries (make binaries) calls Build; kind-e2e/cluster
// and the e2e runner call Find and Set.Path and never build anything.
//
//	root, err := binaries.RepoRoot(".")
//	versions, err := binaries.VersionsOf(root, os.Getenv("K8S"))
//	set := binaries.Find(root, versions)
//	path, err := set.Path(binaries.APIServer) // error says to run make binaries
package binaries
