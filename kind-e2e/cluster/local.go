// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/binaries"
)

//go:embed audit-policy.yaml
var auditPolicy []byte

// startAttempts is how often free ports are looked for: somebody else may take one
// between our look and the component's.
const startAttempts = 3

// startLocal starts etcd, the API server and its two clients.
func (c *Cluster) startLocal(ctx context.Context) error {
	for attempt := 1; ; attempt++ {
		err := c.tryLocal(ctx)
		if err == nil || attempt == startAttempts || !strings.Contains(err.Error(), syscall.EADDRINUSE.Error()) {
			return err
		}
		if err := c.stopProcesses(); err != nil {
			return err
		}
		c.processes = nil
		if err := c.emptyDir(); err != nil {
			return err
		}
	}
}

func (c *Cluster) tryLocal(ctx context.Context) error {
	p, err := freePorts()
	if err != nil {
		return err
	}
	c.Endpoint = fmt.Sprintf("https://%s:%d", loopback, p.apiServer)
	creds, err := c.issueCredentials()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(c.Dir, "audit-policy.yaml"), auditPolicy, 0o644); err != nil {
		return err
	}
	// etcd and the API server start together: the latter tries again until the
	// former answers.
	if _, err := c.run(binaries.Etcd, etcdArgs(c.Dir, p, creds)); err != nil {
		return err
	}
	apiServer, err := c.run(binaries.APIServer, apiServerArgs(c.Dir, p, creds))
	if err != nil {
		return err
	}
	if err := c.waitReady(ctx, apiServer, c.Endpoint+"/readyz"); err != nil {
		return err
	}
	controllers, err := c.run(binaries.ControllerManager, controllerManagerArgs(p, creds))
	if err != nil {
		return err
	}
	scheduler, err := c.run(binaries.Scheduler, schedulerArgs(p, creds))
	if err != nil {
		return err
	}
	url := func(port int) string { return fmt.Sprintf("https://%s:%d/healthz", loopback, port) }
	if err := c.waitReady(ctx, controllers, url(p.controllerManager)); err != nil {
		return err
	}
	if err := c.waitReady(ctx, scheduler, url(p.scheduler)); err != nil {
		return err
	}
	return c.waitServiceAccount(ctx)
}

// run starts one of the cluster's own programs.
func (c *Cluster) run(name string, args []string) (*Process, error) {
	path, err := c.binaries.Path(name)
	if err != nil {
		return nil, err
	}
	p, err := StartProcess(ProcessSpec{Name: name, Path: path, Args: args, Dir: c.Dir})
	if err != nil {
		return nil, err
	}
	c.processes = append(c.processes, p)
	return p, nil
}

// issueCredentials makes the authorities and everything that they sign.
func (c *Cluster) issueCredentials() (credentials, error) {
	dir := filepath.Join(c.Dir, "pki")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return credentials{}, err
	}
	creds := credentials{kubeconfigs: map[string]string{}}
	var errs []error
	ca := func(to *CertFiles, name string) *authority {
		a, err := newAuthority(name)
		if err != nil {
			errs = append(errs, err)
			return &authority{}
		}
		*to, err = a.write(dir, name)
		errs = append(errs, err)
		return a
	}
	servingCA := ca(&creds.servingCA, "serving-ca")
	clientCA := ca(&creds.clientCA, "client-ca")
	etcdCA := ca(&creds.etcdCA, "etcd-ca")
	frontProxyCA := ca(&creds.frontProxyCA, "front-proxy-ca")
	if err := errors.Join(errs...); err != nil {
		return credentials{}, err
	}
	c.CAPEM, c.clientCA, c.ClientCA = servingCA.certPEM, clientCA, creds.clientCA

	store := func(to *CertFiles, name string) func(keyPair, error) {
		return func(pair keyPair, err error) {
			if err == nil {
				*to, err = pair.write(dir, name)
			}
			errs = append(errs, err)
		}
	}
	store(&creds.apiServer, "kube-apiserver")(servingCA.server("kube-apiserver", loopback, "localhost", serviceIP,
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"))
	store(&creds.controllerManager, "kube-controller-manager")(servingCA.server("kube-controller-manager", loopback))
	store(&creds.scheduler, "kube-scheduler")(servingCA.server("kube-scheduler", loopback))
	store(&creds.etcd, "etcd")(etcdCA.peer("etcd", loopback))
	store(&creds.etcdClient, "kube-apiserver-etcd-client")(etcdCA.client("kube-apiserver"))
	store(&creds.frontProxyClient, userFrontProxy)(frontProxyCA.client(userFrontProxy))
	store(&creds.serviceAccount, "service-account")(serviceAccountKey())
	for _, user := range []string{UserControllerManager, UserScheduler} {
		path, err := c.UserKubeconfig(user)
		creds.kubeconfigs[user] = path
		errs = append(errs, err)
	}
	errs = append(errs, c.useAdmin(c.UserKubeconfig(UserAdmin, "system:masters")))
	return creds, errors.Join(errs...)
}

// freePorts asks the kernel for ports that nobody listens on.
func freePorts() (ports, error) {
	var p ports
	for _, port := range []*int{&p.etcd, &p.etcdPeer, &p.apiServer, &p.controllerManager, &p.scheduler} {
		l, err := net.Listen("tcp", loopback+":0")
		if err != nil {
			return ports{}, fmt.Errorf("finding a free port: %w", err)
		}
		// Open until all are found, so that they differ.
		defer l.Close()
		*port = l.Addr().(*net.TCPAddr).Port
	}
	return p, nil
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", loopback+":0")
	if err != nil {
		return "", fmt.Errorf("finding a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().String(), nil
}
