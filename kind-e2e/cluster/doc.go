// SPDX-License-Identifier: Apache-2.0

// Package cluster runs a Kubernetes cluster on this machine, without containers:
// etcd, kube-apiserver, kube-controller-manager and the default kube-scheduler as
// plain processes on loopback, with TLS that clients verify, RBAC, NodeRestriction
// and an audit log, each component under its own identity. KWOK plays the kubelets
// of Nodes that somebody else (the fake AWS) registers; this package adds to it
// that pods are admitted as a kubelet admits them. Linux only, because children
// have to die with their parent.
//
// It must not know the product, and builds nothing: binaries come from
// kind-e2e/binaries. Callers are kind-e2e/cmd/cluster and the e2e runner:
//
//	c, err := cluster.Start(ctx, cluster.Options{Name: "e2e"})  // about 10 s
//	defer c.Stop()
//	out, err := c.Kubectl(ctx, "get", "nodes")      // as admin
//	err = c.Apply(ctx, manifestYAML)                // kubectl apply --server-side
//	client, err := kubernetes.NewForConfig(c.Config())
//	path, err := c.ServiceAccountKubeconfig(ctx, "kube-system", "jit-scheduler")
//	events, err := c.AuditEvents()                  // who did what, with what code
//
// and, to fill the cluster with nodes, c.Endpoint, c.CAPEM and c.ClientCA are what
// a fake AWS needs to let kubelets join: it signs client certificates of
// system:node:<name> in group system:nodes with ClientCA and then
//
//   - creates the Node with annotation kwok.x-k8s.io/node: fake (AnnotationNode),
//     its labels, taints, capacity, allocatable and addresses;
//   - sets its Ready condition when it has booted. KWOK and this package never
//     write to a Node;
//   - creates no Lease: KWOK holds and renews the Node's lease, and plays pods only
//     of Nodes whose lease it holds.
//
// A pod bound to such a Node is, in this order, admitted (annotation
// fake.jit-scheduler.io/admitted: "true") or Failed with the kubelet's reason
// (OutOfcpu, NodeAffinity, TaintToleration...), made Running and Ready by KWOK,
// and removed at its deletion. See the Annotation constants for pods that end by
// themselves or ignore SIGTERM.
//
// Everything of a run is in Cluster.Dir (.bin/run/<name>): logs, certificates,
// kubeconfigs, audit.log, etcd's data. It stays after Stop, for reading, and is
// replaced by the next Start of the same name.
package cluster
