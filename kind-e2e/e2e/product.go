// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"net"
	"path/filepath"
	"strconv"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/cluster"
)

// Product is a running jit-scheduler.
type Product struct {
	*cluster.Process
	// Port serves /healthz, /readyz and /metrics over TLS.
	Port int
	// AccessKey is what its calls are signed with: replicas are told apart by it.
	AccessKey string
}

// Install does what the README tells users to do: the CRDs that the binary prints, then kubectl apply -k.
// The Deployment's pods stay pending, as there is no node for them: the process is run here instead.
func (e *Env) Install(ctx context.Context) error {
	if err := e.InstallCRDs(ctx); err != nil {
		return err
	}
	if err := e.Apply(ctx, "manifests/base"); err != nil {
		return err
	}
	return e.kubectl(ctx, "-n", "kube-system", "scale", "deployment/jit-scheduler", "--replicas=0")
}

// StartProduct runs a replica of the product under the ServiceAccount that manifests/ ships.
func (e *Env) StartProduct(ctx context.Context, name string, args ...string) (*Product, error) {
	kubeconfig, err := e.Cluster.ServiceAccountKubeconfig(ctx, "kube-system", "jit-scheduler")
	if err != nil {
		return nil, err
	}
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	key := "AK" + name
	p, err := e.run(cluster.ProcessSpec{
		Name: name, Path: filepath.Join(e.Root, ".bin", "jit-scheduler"),
		Args: append([]string{
			"--kubeconfig=" + kubeconfig, "--cluster-name=demo", "--secure-port=" + strconv.Itoa(port), "--bind-address=127.0.0.1",
			"--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig, "-v=2",
		}, args...),
		Env: []string{
			"AWS_ENDPOINT_URL=" + e.Fake.URL, "AWS_REGION=us-east-1", "AWS_EC2_METADATA_DISABLED=true",
			"AWS_ACCESS_KEY_ID=" + key, "AWS_SECRET_ACCESS_KEY=secret",
		},
	})
	if err != nil {
		return nil, err
	}
	return &Product{Process: p, Port: port, AccessKey: key}, nil
}

// freePort asks the kernel for a port that is free now.
func freePort(ctx context.Context) (int, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port, nil
}
