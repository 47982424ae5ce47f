// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"crypto/tls"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/binaries"
)

// TestRealCluster starts a real cluster, once for all parts, because that takes
// 10 s. With E2E=1 in the environment it never skips.
func TestRealCluster(t *testing.T) {
	root, err := binaries.RepoRoot(".")
	if err != nil {
		t.Fatal(err)
	}
	versions, err := binaries.VersionsOf(root, os.Getenv("K8S"))
	if err != nil {
		t.Fatal(err)
	}
	if missing := binaries.Find(root, versions).Missing(programNames()...); len(missing) > 0 && os.Getenv("E2E") != "1" {
		t.Skipf("not built (make binaries): %s", strings.Join(missing, ", "))
	}
	c, err := Start(t.Context(), Options{Name: "selftest", Root: root, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Stop() })
	admin := clientFor(t, c.Config())

	if c.Mode == ModeLocal { // kind's node image brings a version of its own
		t.Run("version", func(t *testing.T) { testVersion(t, admin, versions.Kubernetes) })
	}
	t.Run("clients verify and are verified", func(t *testing.T) { testTLS(t, c) })
	t.Run("a kubelet registers its own Node only", func(t *testing.T) { testKubelet(t, c) })
	t.Run("pods live and die", func(t *testing.T) { testPods(t, c, admin) })
	t.Run("a service account has the rights that RBAC gives", func(t *testing.T) { testServiceAccount(t, c, admin) })
	t.Run("nobody of us was refused", func(t *testing.T) { testNoneRefused(t, c) })
	t.Run("a second one is refused, the end ends all", func(t *testing.T) { testStop(t, c, root) })
}

func clientFor(t *testing.T, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func clientAt(t *testing.T, kubeconfig string, err error) *kubernetes.Clientset {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return clientFor(t, config)
}

func testVersion(t *testing.T, admin *kubernetes.Clientset, want string) {
	got, err := admin.Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	minor := strings.Split(want, ".")[1]
	if got.GitVersion != want || got.Major != "1" || got.Minor != minor {
		t.Errorf("the server says %s, major %q, minor %q; want %s", got.GitVersion, got.Major, got.Minor, want)
	}
}

func testTLS(t *testing.T, c *Cluster) {
	systemRoots := &http.Client{Timeout: 5 * time.Second}
	if _, err := systemRoots.Get(c.Endpoint + "/version"); err == nil || !strings.Contains(err.Error(), "x509") {
		t.Errorf("a client that does not know the CA got error %v, want one about x509", err)
	}
	nobody := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: poolOf(t, c.CAPEM)},
	}}
	resp, err := nobody.Get(c.Endpoint + "/api")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden {
		t.Errorf("a client without a certificate got %s", resp.Status)
	}
}

// testKubelet registers Node n as its kubelet, not Ready, with a certificate
// signed by the files that a fake AWS is given.
func testKubelet(t *testing.T, c *Cluster) {
	kubeconfig, err := c.UserKubeconfig("system:node:n", "system:nodes")
	kubelet := clientAt(t, kubeconfig, err)
	node := playedNode(func(n *corev1.Node) {
		n.Labels = map[string]string{"karpenter.sh/nodepool": "default"}
		n.Status.Capacity = n.Status.Allocatable
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse, Reason: "Booting"}}
	})
	if _, err := kubelet.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	other := node.DeepCopy()
	other.Name = "other"
	if _, err := kubelet.CoreV1().Nodes().Create(t.Context(), other, metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a kubelet created another's Node: error %v", err)
	}
	// The lease shows that KWOK has taken the Node over.
	eventually(t, "a lease of n", func(ctx context.Context) bool {
		_, err := c.Kubectl(ctx, "get", "lease", "--namespace=kube-node-lease", "n")
		return err == nil
	})
	got, err := kubelet.CoreV1().Nodes().Get(t.Context(), "n", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if ready := got.Status.Conditions[0]; ready.Status != corev1.ConditionFalse || ready.Reason != "Booting" {
		t.Errorf("somebody else changed the Ready condition: %+v", ready)
	}
	got.Status.Conditions[0].Status = corev1.ConditionTrue
	if _, err := kubelet.CoreV1().Nodes().UpdateStatus(t.Context(), got, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func testPods(t *testing.T, c *Cluster, admin *kubernetes.Clientset) {
	pods := admin.CoreV1().Pods("default")
	create := func(name string, requests corev1.ResourceList, change func(*corev1.Pod)) {
		pod := boundPod(requests, change)
		pod.Name, pod.UID, pod.Spec.Containers[0].Image = name, "", "pause"
		if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	is := func(name string, phase corev1.PodPhase, reason string) func(context.Context) bool {
		return func(ctx context.Context) bool {
			pod, err := pods.Get(ctx, name, metav1.GetOptions{})
			return err == nil && pod.Status.Phase == phase && pod.Status.Reason == reason
		}
	}
	create("scheduled", list("cpu", "3"), func(p *corev1.Pod) { p.Spec.NodeName = "" })
	eventually(t, "scheduled to run", is("scheduled", corev1.PodRunning, ""))
	create("too-big", list("cpu", "2"), nil) // bound at its birth, past any scheduler
	eventually(t, "too-big to be rejected", is("too-big", corev1.PodFailed, "OutOfcpu"))
	create("short", nil, func(p *corev1.Pod) {
		p.Annotations, p.Spec.RestartPolicy = map[string]string{AnnotationRunFor: "1s"}, corev1.RestartPolicyNever
	})
	eventually(t, "short to end", is("short", corev1.PodSucceeded, ""))
	if _, err := c.Kubectl(t.Context(), "delete", "pod", "--timeout=20s", "scheduled"); err != nil {
		t.Error(err)
	}
	create("fits-now", list("cpu", "4"), nil)
	eventually(t, "fits-now to run", is("fits-now", corev1.PodRunning, ""))
}

func testServiceAccount(t *testing.T, c *Cluster, admin *kubernetes.Clientset) {
	ctx := t.Context()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "reader"}}
	if _, err := admin.CoreV1().ServiceAccounts("default").Create(ctx, account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	role := &rbacv1.Role{ObjectMeta: account.ObjectMeta, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}},
	}}
	if _, err := admin.RbacV1().Roles("default").Create(ctx, role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: account.ObjectMeta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: "reader"}},
	}
	if _, err := admin.RbacV1().RoleBindings("default").Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := c.ServiceAccountKubeconfig(ctx, "default", "reader")
	reader := clientAt(t, kubeconfig, err)
	eventually(t, "the right to list pods", func(ctx context.Context) bool {
		_, err := reader.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
		return err == nil
	})
	if _, err := reader.CoreV1().Nodes().List(ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("the account listed nodes: error %v", err)
	}
	var refused, allowed bool
	for _, e := range auditOf(t, c) {
		if e.User == "system:serviceaccount:default:reader" && e.Verb == "list" {
			refused = refused || e.Resource == "nodes" && e.Code == http.StatusForbidden && e.Decision == "forbid"
			allowed = allowed || e.Resource == "pods" && e.Code == http.StatusOK && strings.Contains(e.Reason, "reader")
		}
	}
	if !refused || !allowed {
		t.Errorf("the audit log shows the refused request: %v, the allowed one: %v; want both", refused, allowed)
	}
}

// testNoneRefused is about our own components; that each was there to be refused
// is part of it.
func testNoneRefused(t *testing.T, c *Cluster) {
	seen := map[string]bool{}
	for _, e := range auditOf(t, c) {
		seen[e.User] = true
		switch e.User {
		case UserControllerManager, UserScheduler, UserKwok, UserKubelets:
			if e.Code == http.StatusForbidden {
				t.Errorf("%s was refused %s %s", e.User, e.Verb, e.URI)
			}
		}
	}
	for _, user := range []string{UserControllerManager, UserScheduler, UserKwok, UserKubelets} {
		if !seen[user] {
			t.Errorf("the audit log does not have %s", user)
		}
	}
}

func testStop(t *testing.T, c *Cluster, root string) {
	_, err := Start(t.Context(), Options{Name: c.Name, Root: root, Dir: c.Dir, Mode: c.Mode})
	if err == nil || !strings.Contains(err.Error(), "still runs") {
		t.Errorf("a second cluster in the same folder: error %v", err)
	}
	start := time.Now()
	if err := c.Stop(); err != nil {
		t.Error(err)
	}
	t.Logf("stopping took %s", time.Since(start).Round(time.Millisecond))
	for _, p := range c.processes {
		if !p.ended() {
			t.Errorf("%s still runs", p.name)
		}
	}
	if pid, err := Owner(c.Dir); pid != 0 || err != nil {
		t.Errorf("process %d owns the stopped cluster, error %v", pid, err)
	}
}

func auditOf(t *testing.T, c *Cluster) []AuditEvent {
	t.Helper()
	events, err := c.AuditEvents()
	if err != nil {
		t.Fatal(err)
	}
	return events
}

func eventually(t *testing.T, what string, ok func(context.Context) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for !ok(ctx) {
		select {
		case <-ctx.Done():
			t.Fatalf("waited in vain for %s", what)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
