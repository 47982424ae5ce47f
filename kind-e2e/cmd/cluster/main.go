// SPDX-License-Identifier: Apache-2.0

// Command cluster runs the local cluster by hand. "up" starts one, prints the
// path of the admin's kubeconfig, and keeps it running until it is interrupted;
// "down", from anywhere, ends the one that "up" runs. CLUSTER=kind makes it a
// kind cluster, K8S=1.34 one of Kubernetes 1.34. It decides nothing: package
// cluster does.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/binaries"
	"github.com/jit-scheduler/jit-scheduler/kind-e2e/cluster"
)

const (
	usage       = "usage: cluster [-name NAME] up|down"
	downTimeout = 30 * time.Second
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("cluster", flag.ContinueOnError)
	name := flags.String("name", "default", "tells clusters on one machine apart")
	if err := flags.Parse(args); err != nil {
		return err
	}
	switch flags.Arg(0) {
	case "up":
		return up(ctx, *name, out)
	case "down":
		return down(*name, out)
	default:
		return errors.New(usage)
	}
}

func up(ctx context.Context, name string, out io.Writer) error {
	start := time.Now()
	c, err := cluster.Start(ctx, cluster.Options{Name: name})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "cluster %s is ready after %.1fs; logs are in %s; interrupt to end it\n",
		c.Name, time.Since(start).Seconds(), c.Dir)
	fmt.Fprintf(out, "export KUBECONFIG=%s\n", c.Kubeconfig)
	return errors.Join(c.Wait(ctx), c.Stop())
}

// down asks the process that runs the cluster to end, and waits for it.
func down(name string, out io.Writer) error {
	root, err := binaries.RepoRoot(".")
	if err != nil {
		return err
	}
	dir := cluster.DefaultDir(root, name)
	pid, err := cluster.Owner(dir)
	if err != nil {
		return err
	}
	if pid == 0 {
		if cluster.Mode(os.Getenv("CLUSTER")) == cluster.ModeKind {
			return cluster.DeleteKind(name) // whoever ran it was killed
		}
		fmt.Fprintf(out, "cluster %s does not run\n", name)
		return nil
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		return fmt.Errorf("ending process %d: %w", pid, err)
	}
	for deadline := time.Now().Add(downTimeout); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if left, err := cluster.Owner(dir); err != nil || left == 0 {
			return err
		}
	}
	return fmt.Errorf("process %d did not end within %s", pid, downTimeout)
}
