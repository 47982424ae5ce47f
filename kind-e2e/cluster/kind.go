// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	kind "sigs.k8s.io/kind/pkg/cluster"
	"sigs.k8s.io/kind/pkg/cluster/nodes"
	"sigs.k8s.io/kind/pkg/cluster/nodeutils"
)

// ErrNoDocker is Start's error in ModeKind where no container engine answers.
var ErrNoDocker = errors.New("CLUSTER=kind needs Docker (or podman or nerdctl), and none answers here; leave CLUSTER out to run without containers")

const (
	kindReadyTimeout = 2 * time.Minute
)

// kindConfig has one node, the control plane, which takes no pods but those that
// tolerate it, so that everything else needs a machine.
const kindConfig = `
kind: Cluster
apiVersion: kind.x-k8s.io/v1alpha4
networking: {apiServerAddress: "127.0.0.1"}
nodes:
- role: control-plane
  extraMounts:
  - {hostPath: %q, containerPath: /etc/kubernetes/audit}
  kubeadmConfigPatches:
  - |
    kind: ClusterConfiguration
    apiServer:
      extraArgs:
      - {name: audit-policy-file, value: /etc/kubernetes/audit/audit-policy.yaml}
      - {name: audit-log-path, value: /etc/kubernetes/audit/audit.log}
      - {name: audit-log-maxsize, value: "100000"}
      extraVolumes:
      - {name: audit, hostPath: /etc/kubernetes/audit, mountPath: /etc/kubernetes/audit, pathType: Directory}
`

// startKind creates a kind cluster with the same audit log, and takes from its
// control plane what a fake AWS needs.
func (c *Cluster) startKind(ctx context.Context) error {
	provider, err := kindProvider()
	if err != nil {
		return err
	}
	name := "jit-" + c.Name
	auditDir := filepath.Join(c.Dir, "audit")
	if err := os.MkdirAll(auditDir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(auditDir, "audit-policy.yaml"), auditPolicy, 0o644); err != nil {
		return err
	}
	c.AuditLog = filepath.Join(auditDir, "audit.log")
	c.Kubeconfig = filepath.Join(c.Dir, "kind.kubeconfig")
	c.stopMode = func() error { return provider.Delete(name, c.Kubeconfig) }
	// Create cannot be interrupted; it has a deadline of its own.
	if err := provider.Create(name,
		kind.CreateWithRawConfig(fmt.Appendf(nil, kindConfig, auditDir)),
		kind.CreateWithKubeconfigPath(c.Kubeconfig),
		kind.CreateWithWaitForReady(kindReadyTimeout),
		kind.CreateWithDisplayUsage(false),
		kind.CreateWithDisplaySalutation(false),
	); err != nil {
		return fmt.Errorf("creating kind cluster %s: %w", name, err)
	}
	if err := c.useAdmin(c.Kubeconfig, nil); err != nil {
		return err
	}
	c.Endpoint, c.CAPEM = c.config.Host, c.config.CAData
	all, err := provider.ListInternalNodes(name)
	if err != nil {
		return fmt.Errorf("finding the node of kind cluster %s: %w", name, err)
	}
	if err := c.takeKindCA(all); err != nil {
		return err
	}
	// kind takes this taint off a cluster of one node.
	_, err = c.Kubectl(ctx, "taint", "nodes", "--all", "--overwrite", "node-role.kubernetes.io/control-plane:NoSchedule")
	return err
}

// takeKindCA copies the CA of client certificates out of the control plane.
func (c *Cluster) takeKindCA(all []nodes.Node) error {
	controlPlane, err := nodeutils.BootstrapControlPlaneNode(all)
	if err != nil {
		return fmt.Errorf("finding the control plane: %w", err)
	}
	var pair keyPair
	for path, to := range map[string]*[]byte{
		"/etc/kubernetes/pki/ca.crt": &pair.certPEM,
		"/etc/kubernetes/pki/ca.key": &pair.keyPEM,
	} {
		var out strings.Builder
		if err := controlPlane.Command("cat", path).SetStdout(&out).Run(); err != nil {
			return fmt.Errorf("reading %s of the control plane: %w", path, err)
		}
		*to = []byte(out.String())
	}
	if c.clientCA, err = parseAuthority(pair); err != nil {
		return err
	}
	c.ClientCA, err = pair.write(c.Dir, "client-ca")
	return err
}

// DeleteKind deletes the kind cluster that Start made for name, if the process
// that did can no longer.
func DeleteKind(name string) error {
	provider, err := kindProvider()
	if err != nil {
		return err
	}
	return provider.Delete("jit-"+name, "")
}

// kindProvider returns kind with the container engine that answers.
func kindProvider() (*kind.Provider, error) {
	engine, err := kind.DetectNodeProvider()
	if err != nil {
		return nil, ErrNoDocker
	}
	provider := kind.NewProvider(engine)
	if _, err := provider.List(); err != nil {
		return nil, ErrNoDocker // the command is there, the engine is not
	}
	return provider, nil
}
