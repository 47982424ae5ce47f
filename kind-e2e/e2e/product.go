// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/cluster"
)

// The ServiceAccount that manifests/ ships; a token of it is all that a replica of the product has.
const (
	productNamespace = "kube-system"
	productAccount   = "jit-scheduler"
)

// Product is a running jit-scheduler.
type Product struct {
	*cluster.Process
	// Port serves /healthz, /readyz and /metrics over TLS.
	Port int
	// AccessKey is what its calls are signed with, CredentialID what the audit log calls its token: replicas are told
	// apart by them.
	AccessKey, CredentialID string
}

// Install does what the README tells users to do: the CRDs that the binary prints, then kubectl apply -k.
// The Deployment's pods stay pending, as there is no node for them: the process is run here instead.
func (e *Env) Install(ctx context.Context) error {
	if err := e.InstallCRDs(ctx); err != nil {
		return err
	}
	return e.installBase(ctx)
}

func (e *Env) installBase(ctx context.Context) error {
	if err := e.Apply(ctx, "manifests/base"); err != nil {
		return err
	}
	return e.kubectl(ctx, "-n", productNamespace, "scale", "deployment/jit-scheduler", "--replicas=0")
}

// InstallCRDs applies Karpenter's CRDs, as the product prints them.
func (e *Env) InstallCRDs(ctx context.Context) error {
	path, err := e.productPath(ctx)
	if err != nil {
		return err
	}
	crds, err := exec.CommandContext(ctx, path, "crds").Output()
	if err != nil {
		return fmt.Errorf("printing the CRDs: %w", err)
	}
	if err := e.Cluster.Apply(ctx, crds); err != nil {
		return err
	}
	return e.kubectl(ctx, "wait", "--for=condition=Established", "--timeout=30s", "crd/nodepools.karpenter.sh",
		"crd/nodeclaims.karpenter.sh", "crd/ec2nodeclasses.karpenter.k8s.aws")
}

// productPath builds the product, unless this Env was told of a binary.
func (e *Env) productPath(ctx context.Context) (string, error) {
	return e.build(ctx, "jit-scheduler", "./cmd/jit-scheduler")
}

// StartProduct runs a replica of the product under the ServiceAccount that manifests/ ships. Arguments that are given
// come after, and win over, those that every replica gets.
func (e *Env) StartProduct(ctx context.Context, name string, args ...string) (*Product, error) {
	path, err := e.productPath(ctx)
	if err != nil {
		return nil, err
	}
	kubeconfig, credential, err := e.replicaKubeconfig(ctx, name)
	if err != nil {
		return nil, err
	}
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	key := "AK" + name
	p, err := e.run(cluster.ProcessSpec{
		Name: name, Path: path,
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
	return &Product{Process: p, Port: port, AccessKey: key, CredentialID: credential}, nil
}

// replicaKubeconfig writes a kubeconfig with a token of this replica's own, and returns that token's id as well.
func (e *Env) replicaKubeconfig(ctx context.Context, name string) (path, credential string, err error) {
	shared, err := e.Cluster.ServiceAccountKubeconfig(ctx, productNamespace, productAccount)
	if err != nil {
		return "", "", err
	}
	config, err := clientcmd.LoadFromFile(shared)
	if err != nil {
		return "", "", err
	}
	for _, auth := range config.AuthInfos {
		if credential, err = tokenID(auth.Token); err != nil {
			return "", "", err
		}
	}
	path = e.kubeconfigPath(name)
	return path, credential, clientcmd.WriteToFile(*config, path)
}

func (e *Env) kubeconfigPath(replica string) string {
	return filepath.Join(e.Cluster.Dir, "kubeconfig", replica)
}

// tokenID is what the audit log calls a ServiceAccount's token.
func tokenID(token string) (string, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return "", fmt.Errorf("a ServiceAccount's token has %d parts, not 3", len(parts))
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return "", fmt.Errorf("reading a ServiceAccount's token: %w", err)
	}
	var claims struct {
		ID string `json:"jti"`
	}
	if err := json.Unmarshal(raw, &claims); err != nil {
		return "", fmt.Errorf("reading a ServiceAccount's token: %w", err)
	}
	return "JTI=" + claims.ID, nil
}

// get reads a path of a replica's HTTPS port as the cluster's admin.
func (e *Env) get(ctx context.Context, p *Product, path string) (status int, body string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	config := e.Cluster.Config()
	cert, err := tls.X509KeyPair(config.CertData, config.KeyData)
	if err != nil {
		return 0, "", fmt.Errorf("reading the admin's certificate: %w", err)
	}
	// The replica's own certificate is self-signed and made at its start: there is nothing to verify it with.
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{
		Certificates: []tls.Certificate{cert}, InsecureSkipVerify: true,
	}}}
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d%s", p.Port, path), nil)
	if err != nil {
		return 0, "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

// readLog returns the whole log of a process.
func readLog(p *cluster.Process) (string, error) {
	text, err := os.ReadFile(p.LogPath())
	return string(text), err
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
