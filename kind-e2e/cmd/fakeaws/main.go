// SPDX-License-Identifier: Apache-2.0

// Command fakeaws serves the fake AWS endpoint over HTTP on loopback until it is interrupted. It
// mints a client certificate for every machine that boots, as the kubelet's bootstrap would.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/fakeaws"
)

type flags struct {
	listen, portFile                 string
	clusterName, clusterEndpoint     string
	clusterCAFile, clusterVersion    string
	serviceCIDR                      string
	clientCACertFile, clientCAKey    string
	pending, boot, join, ready, term time.Duration
	describeLag, lease               time.Duration
	cloudControllerDeletes, verbose  bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, parseFlags())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "fakeaws:", err)
		os.Exit(1)
	}
}

func parseFlags() flags {
	var f flags
	defaults := fakeaws.DefaultSettings()
	flag.StringVar(&f.listen, "listen", "127.0.0.1:0", "address to serve on; port 0 takes a free one")
	flag.StringVar(&f.portFile, "port-file", "", "file to write the address to, once it is served")
	flag.StringVar(&f.clusterName, "cluster-name", "demo", "name of the EKS cluster")
	flag.StringVar(&f.clusterEndpoint, "cluster-endpoint", "", "URL of the API server, as EKS tells it")
	flag.StringVar(&f.clusterCAFile, "cluster-ca-file", "", "PEM file of the CA of the API server, as EKS tells it")
	flag.StringVar(&f.clusterVersion, "cluster-version", "1.37", "Kubernetes minor version of the EKS cluster")
	flag.StringVar(&f.serviceCIDR, "service-cidr", "10.96.0.0/16", "service CIDR of the EKS cluster")
	flag.StringVar(&f.clientCACertFile, "client-ca-cert", "", "PEM file of the CA that signs kubelets; without it machines boot and join nothing")
	flag.StringVar(&f.clientCAKey, "client-ca-key", "", "PEM file of that CA's key")
	flag.DurationVar(&f.pending, "pending-delay", 0, "launch to running; 0 means the boot delay")
	flag.DurationVar(&f.boot, "boot-delay", defaults.BootDelay.Duration, "launch to a booted operating system")
	flag.DurationVar(&f.join, "join-delay", defaults.JoinDelay.Duration, "booted to a registered Node")
	flag.DurationVar(&f.ready, "ready-delay", defaults.ReadyDelay.Duration, "registered to Ready")
	flag.DurationVar(&f.term, "terminate-delay", defaults.TerminateDelay.Duration, "shutting-down to terminated")
	flag.DurationVar(&f.describeLag, "describe-lag", defaults.DescribeLag.Duration, "how long new instances are unknown to Describe calls")
	flag.DurationVar(&f.lease, "lease-period", 0, "kubelet heartbeat; 0 leaves it to KWOK")
	flag.BoolVar(&f.cloudControllerDeletes, "cloud-controller-deletes", defaults.CloudControllerDeletes, "delete the Nodes of terminated instances")
	flag.BoolVar(&f.verbose, "v", false, "log what machines do")
	flag.Parse()
	return f
}

func (f flags) options() (fakeaws.Options, error) {
	settings := fakeaws.DefaultSettings()
	of := func(d time.Duration) metav1.Duration { return metav1.Duration{Duration: d} }
	settings.PendingDelay, settings.BootDelay, settings.JoinDelay = of(f.pending), of(f.boot), of(f.join)
	settings.ReadyDelay, settings.TerminateDelay, settings.DescribeLag = of(f.ready), of(f.term), of(f.describeLag)
	settings.LeasePeriod, settings.CloudControllerDeletes = of(f.lease), f.cloudControllerDeletes
	level := slog.LevelWarn
	if f.verbose {
		level = slog.LevelDebug
	}
	opts := fakeaws.Options{
		ClusterName: f.clusterName, ClusterVersion: f.clusterVersion, Endpoint: f.clusterEndpoint, ServiceCIDR: f.serviceCIDR, Settings: &settings,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level})),
	}
	if f.clusterCAFile != "" {
		ca, err := os.ReadFile(f.clusterCAFile)
		if err != nil {
			return opts, fmt.Errorf("reading --cluster-ca-file: %w", err)
		}
		opts.CA = ca
	}
	if f.clientCACertFile == "" {
		return opts, nil
	}
	issuer, err := newIssuer(f.clientCACertFile, f.clientCAKey)
	if err != nil {
		return opts, err
	}
	opts.NodeClient, opts.CloudControllerClient = issuer.nodeClient, issuer.cloudControllerClient
	return opts, nil
}

func run(ctx context.Context, f flags) error {
	opts, err := f.options()
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", f.listen)
	if err != nil {
		return fmt.Errorf("listening on %s: %w", f.listen, err)
	}
	server := fakeaws.New(opts)
	defer server.Close()
	web := &http.Server{Handler: server, ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- web.Serve(listener) }()
	if err := announce(f.portFile, listener.Addr().String()); err != nil {
		return errors.Join(err, web.Close())
	}
	select {
	case err := <-failed:
		return fmt.Errorf("serving on %s: %w", listener.Addr(), err)
	case <-ctx.Done():
		return web.Close()
	}
}

// announce prints the address as one line and writes it to the file, which appears complete or not at all.
func announce(file, address string) error {
	fmt.Println(address)
	if file == "" {
		return nil
	}
	partial := file + ".partial"
	if err := os.WriteFile(partial, []byte(address+"\n"), 0o600); err != nil {
		return fmt.Errorf("writing --port-file: %w", err)
	}
	if err := os.Rename(partial, file); err != nil {
		return fmt.Errorf("writing --port-file: %w", err)
	}
	return nil
}
