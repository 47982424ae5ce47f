// SPDX-License-Identifier: Apache-2.0

// Command compare runs Karpenter and then jit-scheduler on the same work, on a real control plane and a fake AWS endpoint,
// and prints the judge's report of both.
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
	err := e2e.Compare(ctx, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}
