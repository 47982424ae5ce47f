// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"path/filepath"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/binaries"
)

const (
	serviceCIDR      = "10.96.0.0/16"
	serviceIP        = "10.96.0.1" // the first address, which the kubernetes Service gets
	serviceAccountIs = "https://kubernetes.default.svc.cluster.local"
	loopback         = "127.0.0.1"
)

// Users of the components, as their certificates and the audit log name them.
// The RBAC of the first two is built into the API server.
const (
	UserControllerManager = "system:kube-controller-manager"
	UserScheduler         = "system:kube-scheduler"
	UserAdmin             = "admin" // in system:masters
	UserKwok              = "fake.jit-scheduler.io:kwok"
	userFrontProxy        = "front-proxy-client"
	UserKubelets          = "fake.jit-scheduler.io:kubelets"
)

// ports of one control plane, all on loopback.
type ports struct{ etcd, etcdPeer, apiServer, controllerManager, scheduler int }

// credentials are the files that the control plane runs with.
type credentials struct {
	servingCA, clientCA         CertFiles
	etcdCA, frontProxyCA        CertFiles
	apiServer, etcd, etcdClient CertFiles
	frontProxyClient            CertFiles
	controllerManager           CertFiles // serving
	scheduler                   CertFiles // serving
	serviceAccount              CertFiles
	kubeconfigs                 map[string]string // by user
}

func etcdArgs(dir string, p ports, c credentials) []string {
	url := func(port int) string { return fmt.Sprintf("https://%s:%d", loopback, port) }
	return []string{
		"--name=default",
		"--data-dir=" + filepath.Join(dir, "etcd"),
		"--listen-client-urls=" + url(p.etcd),
		"--advertise-client-urls=" + url(p.etcd),
		"--listen-peer-urls=" + url(p.etcdPeer),
		"--initial-advertise-peer-urls=" + url(p.etcdPeer),
		"--initial-cluster=default=" + url(p.etcdPeer),
		"--cert-file=" + c.etcd.CertPath, "--key-file=" + c.etcd.KeyPath,
		"--client-cert-auth=true", "--trusted-ca-file=" + c.etcdCA.CertPath,
		"--peer-cert-file=" + c.etcd.CertPath, "--peer-key-file=" + c.etcd.KeyPath,
		"--peer-client-cert-auth=true", "--peer-trusted-ca-file=" + c.etcdCA.CertPath,
		// The state of a test cluster need not survive a power cut.
		"--unsafe-no-fsync=true",
		"--quota-backend-bytes=4294967296",
		"--log-level=warn",
	}
}

func apiServerArgs(dir string, p ports, c credentials) []string {
	return []string{
		"--bind-address=" + loopback,
		"--advertise-address=" + loopback,
		fmt.Sprintf("--secure-port=%d", p.apiServer),
		"--tls-cert-file=" + c.apiServer.CertPath, "--tls-private-key-file=" + c.apiServer.KeyPath,
		"--client-ca-file=" + c.clientCA.CertPath,
		"--anonymous-auth=false",
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		fmt.Sprintf("--etcd-servers=https://%s:%d", loopback, p.etcd),
		"--etcd-cafile=" + c.etcdCA.CertPath,
		"--etcd-certfile=" + c.etcdClient.CertPath, "--etcd-keyfile=" + c.etcdClient.KeyPath,
		"--service-cluster-ip-range=" + serviceCIDR,
		"--service-account-issuer=" + serviceAccountIs,
		"--service-account-key-file=" + c.serviceAccount.CertPath,
		"--service-account-signing-key-file=" + c.serviceAccount.KeyPath,
		"--audit-policy-file=" + filepath.Join(dir, "audit-policy.yaml"),
		"--audit-log-path=" + auditLogPath(dir),
		"--audit-log-maxsize=100000", // MB: never rotated, so that one file has everything
		// No extension API server is here, but every delegating server, such as
		// the schedulers, insists on knowing who may front for users.
		"--requestheader-client-ca-file=" + c.frontProxyCA.CertPath,
		"--requestheader-allowed-names=" + userFrontProxy,
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + c.frontProxyClient.CertPath,
		"--proxy-client-key-file=" + c.frontProxyClient.KeyPath,
		// Loopback is no valid endpoint of the kubernetes Service.
		"--endpoint-reconciler-type=none",
		"--allow-privileged=true",
		"--profiling=false",
	}
}

func controllerManagerArgs(p ports, c credentials) []string {
	kubeconfig := c.kubeconfigs[UserControllerManager]
	return []string{
		"--bind-address=" + loopback,
		fmt.Sprintf("--secure-port=%d", p.controllerManager),
		"--tls-cert-file=" + c.controllerManager.CertPath,
		"--tls-private-key-file=" + c.controllerManager.KeyPath,
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
		"--client-ca-file=" + c.clientCA.CertPath,
		"--root-ca-file=" + c.servingCA.CertPath,
		"--service-account-private-key-file=" + c.serviceAccount.KeyPath,
		"--use-service-account-credentials=true",
		"--leader-elect=false",
		"--profiling=false",
		// Scaling to 1,000 pods should take no longer than the API server needs.
		"--kube-api-qps=1000", "--kube-api-burst=1000",
	}
}

func schedulerArgs(p ports, c credentials) []string {
	kubeconfig := c.kubeconfigs[UserScheduler]
	return []string{
		"--bind-address=" + loopback,
		fmt.Sprintf("--secure-port=%d", p.scheduler),
		"--tls-cert-file=" + c.scheduler.CertPath, "--tls-private-key-file=" + c.scheduler.KeyPath,
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
		"--client-ca-file=" + c.clientCA.CertPath,
		"--leader-elect=false",
		"--profiling=false",
		// Scaling to 1,000 pods should take no longer than the API server needs.
		"--kube-api-qps=1000", "--kube-api-burst=1000",
	}
}

func kwokArgs(dir, kubeconfig, address string) []string {
	return []string{
		"--config=" + filepath.Join(dir, "kwok.yaml"),
		"--kubeconfig=" + kubeconfig,
		"--server-address=" + address,
	}
}

// programNames is every program that a local cluster runs or calls.
func programNames() []string { return binaries.ControlPlane() }
