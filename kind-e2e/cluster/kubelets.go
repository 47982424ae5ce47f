// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/binaries"
)

//go:embed kwok.yaml
var kwokConfig []byte

//go:embed kwok-rbac.yaml
var kwokRBAC []byte

// startKubelets starts what plays the kubelets: the part in this process, and
// KWOK.
func (c *Cluster) startKubelets(ctx context.Context) error {
	if err := c.Apply(ctx, kwokRBAC); err != nil {
		return fmt.Errorf("granting KWOK its rights: %w", err)
	}
	if err := os.WriteFile(filepath.Join(c.Dir, "kwok.yaml"), kwokConfig, 0o644); err != nil {
		return err
	}
	kubeconfig, err := c.UserKubeconfig(UserKubelets)
	if err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	played := newKubelets(client)
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	wg.Go(func() { played.run(running) })
	c.stopKubelets = func() { cancel(); wg.Wait() }
	if err := played.waitSynced(ctx); err != nil {
		return err
	}
	return c.startKwok(ctx)
}

func (c *Cluster) startKwok(ctx context.Context) error {
	kubeconfig, err := c.UserKubeconfig(UserKwok)
	if err != nil {
		return err
	}
	address, err := freeAddress()
	if err != nil {
		return err
	}
	kwok, err := c.run(binaries.Kwok, kwokArgs(c.Dir, kubeconfig, address))
	if err != nil {
		return err
	}
	return c.waitReady(ctx, kwok, "http://"+address+"/healthz")
}
