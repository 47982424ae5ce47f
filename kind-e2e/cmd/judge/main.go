// SPDX-License-Identifier: Apache-2.0

// Command judge watches a cluster and the fake AWS endpoint until it is
// interrupted or its time is up, then prints what was wrong and how fast and
// dear it was. It exits with 0 if nothing was wrong, 1 if something was, and 2
// if it could not judge. It only parses flags; package judge decides.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	passed, err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "judge:", err)
		os.Exit(2)
	case !passed:
		os.Exit(1)
	}
}
