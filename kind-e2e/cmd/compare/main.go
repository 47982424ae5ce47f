// SPDX-License-Identifier: Apache-2.0

// Command compare runs Karpenter and then jit-scheduler on the same work, on a real control plane and a fake AWS endpoint,
// and prints the judge's report of both. With -karpenter it runs Karpenter alone: the proof that the ground holds.
package main

import (
	"flag"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/e2e"
)

func main() {
	alone := flag.Bool("karpenter", false, "run Karpenter only")
	flag.Parse()
	if *alone {
		e2e.Main("compare", e2e.Proof)
		return
	}
	e2e.Main("compare", e2e.Compare)
}
