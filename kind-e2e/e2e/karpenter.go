// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/binaries"
	"github.com/jit-scheduler/jit-scheduler/kind-e2e/cluster"
)

// StartKarpenter runs the unmodified Karpenter AWS controller against this cluster and this endpoint, as admin.
func (e *Env) StartKarpenter(ctx context.Context) (*cluster.Process, error) {
	versions, err := binaries.VersionsOf(e.Root, "")
	if err != nil {
		return nil, err
	}
	path, err := binaries.Find(e.Root, versions).Path(binaries.Karpenter)
	if err != nil {
		return nil, err
	}
	var ports [2]int
	for i := range ports {
		if ports[i], err = freePort(ctx); err != nil {
			return nil, err
		}
	}
	return e.run(cluster.ProcessSpec{Name: "karpenter", Path: path, Env: []string{
		"KUBECONFIG=" + e.Cluster.Kubeconfig, "CLUSTER_NAME=demo", "CLUSTER_ENDPOINT=" + e.Cluster.Endpoint,
		"METRICS_PORT=" + strconv.Itoa(ports[0]), "HEALTH_PROBE_PORT=" + strconv.Itoa(ports[1]),
		"DISABLE_LEADER_ELECTION=true", "AWS_ENDPOINT_URL=" + e.Fake.URL, "AWS_REGION=us-east-1",
		"AWS_EC2_METADATA_DISABLED=true", "AWS_ACCESS_KEY_ID=AKkarpenter", "AWS_SECRET_ACCESS_KEY=secret",
		"SYSTEM_NAMESPACE=kube-system", "POD_NAME=karpenter",
	}})
}

// ApplyForDefaultScheduler applies the examples without their schedulerName line: what Karpenter's users have.
func (e *Env) ApplyForDefaultScheduler(ctx context.Context) error {
	files, err := filepath.Glob(filepath.Join(e.Root, "manifests/examples/*.yaml"))
	if err != nil {
		return err
	}
	for _, f := range files {
		if filepath.Base(f) == "kustomization.yaml" {
			continue
		}
		text, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		var out bytes.Buffer
		for line := range strings.Lines(string(text)) {
			if !strings.HasPrefix(strings.TrimSpace(line), "schedulerName:") {
				out.WriteString(line)
			}
		}
		if err := e.Cluster.Apply(ctx, out.Bytes()); err != nil {
			return err
		}
	}
	return nil
}
