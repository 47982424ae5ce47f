// SPDX-License-Identifier: Apache-2.0

// Command demo runs the main job on this machine: a Deployment is scaled from nothing onto launched machines and down
// again, on a real control plane and a fake AWS endpoint.
package main

import "github.com/jit-scheduler/jit-scheduler/kind-e2e/e2e"

func main() { e2e.Main("demo", e2e.Demo) }
