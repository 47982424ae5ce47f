// SPDX-License-Identifier: Apache-2.0

// Command binaries builds the programs that the local cluster runs, once, into
// .bin: by default etcd, KWOK and Kubernetes of go.mod's version; otherwise
// those named as arguments ("karpenter"). K8S=1.34 in the environment builds
// Kubernetes 1.34 instead. It decides nothing: package binaries does.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/binaries"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Getenv("K8S"), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "binaries:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, names []string, k8s string, out io.Writer) error {
	root, err := binaries.RepoRoot(".")
	if err != nil {
		return err
	}
	versions, err := binaries.VersionsOf(root, k8s)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		names = binaries.ControlPlane()
	}
	_, err = binaries.Build(ctx, root, versions, names, out)
	return err
}
