// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/binaries"
)

// tokenLifetime of a ServiceAccount's token: longer than a run.
const tokenLifetime = 24 * time.Hour

// kubectlTimeout bounds a kubectl call whose context has no earlier end.
const kubectlTimeout = 2 * time.Minute

// UserKubeconfig writes a kubeconfig with a client certificate of user in groups
// and returns its path. What the user may do is RBAC's business.
func (c *Cluster) UserKubeconfig(user string, groups ...string) (string, error) {
	pair, err := c.clientCA.client(user, groups...)
	if err != nil {
		return "", err
	}
	return c.writeKubeconfig(user, &clientcmdapi.AuthInfo{
		ClientCertificateData: pair.certPEM, ClientKeyData: pair.keyPEM,
	})
}

// ServiceAccountKubeconfig writes a kubeconfig with a token of a ServiceAccount,
// which must exist, and returns its path. Its bearer has exactly the rights that
// RBAC gives the account. The token is valid for 24 h.
func (c *Cluster) ServiceAccountKubeconfig(ctx context.Context, namespace, name string) (string, error) {
	client, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		return "", err
	}
	seconds := int64(tokenLifetime.Seconds())
	token, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}},
		metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("requesting a token of service account %s/%s: %w", namespace, name, err)
	}
	return c.writeKubeconfig("system:serviceaccount:"+namespace+":"+name,
		&clientcmdapi.AuthInfo{Token: token.Status.Token})
}

func (c *Cluster) writeKubeconfig(user string, auth *clientcmdapi.AuthInfo) (string, error) {
	dir := filepath.Join(c.Dir, "kubeconfig")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	path := filepath.Join(dir, strings.NewReplacer(":", "-", "/", "-").Replace(user))
	config := clientcmdapi.NewConfig()
	config.Clusters[c.Name] = &clientcmdapi.Cluster{Server: c.Endpoint, CertificateAuthorityData: c.CAPEM}
	config.AuthInfos[user] = auth
	config.Contexts[c.Name] = &clientcmdapi.Context{Cluster: c.Name, AuthInfo: user}
	config.CurrentContext = c.Name
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return "", fmt.Errorf("writing the kubeconfig of %s: %w", user, err)
	}
	return path, nil
}

// useAdmin makes the kubeconfig at path the one of Config and Kubectl.
func (c *Cluster) useAdmin(path string, err error) error {
	if err != nil {
		return err
	}
	c.Kubeconfig = path
	c.config, err = clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return fmt.Errorf("reading the admin's kubeconfig: %w", err)
	}
	c.config.QPS = -1
	return nil
}

// Kubectl runs kubectl as the admin and returns its standard output. An error
// holds the standard error.
func (c *Cluster) Kubectl(ctx context.Context, args ...string) (string, error) {
	return c.kubectl(ctx, nil, args...)
}

// Apply applies a YAML stream on the server's side, as the admin.
func (c *Cluster) Apply(ctx context.Context, manifests []byte) error {
	_, err := c.kubectl(ctx, manifests, "apply", "--server-side", "--force-conflicts", "-f", "-")
	return err
}

func (c *Cluster) kubectl(ctx context.Context, stdin []byte, args ...string) (string, error) {
	path, err := c.binaries.Path(binaries.Kubectl)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, kubectlTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, append([]string{"--kubeconfig=" + c.Kubeconfig}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+c.Dir) // its caches
	cmd.Stdin = bytes.NewReader(stdin)
	cmd.WaitDelay = time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return string(out), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return string(out), nil
}
