// SPDX-License-Identifier: Apache-2.0

// Command demo runs the main job on this machine: a Deployment is scaled from nothing onto launched machines and down
// again, on a real control plane and a fake AWS endpoint.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/e2e"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := e2e.Demo(ctx, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}
