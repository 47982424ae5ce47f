// SPDX-License-Identifier: Apache-2.0

// Package nodeprovisioning is the scheduler framework plugin NodeProvisioning.
//
// It translates between the framework and the embedded provisioner, a few lines per extension point (one file each),
// and decides nothing about capacity itself:
//
//   - PreFilter reads the pod's ledger entry once per cycle;
//   - Filter keeps every pod off planned, closed and held nodes, but for the pods that are paired with a held node;
//     it also does what the in-tree NodeUnschedulable does, which must be disabled beside it;
//   - PostFilter asks for capacity when no ready node can take the pod, and must run before DefaultPreemption;
//   - Reserve and Unreserve tell the ledger where the pod went.
//
// New has no side effects: factories run before leader election, once per profile. The package knows the framework
// and client-go's types only; k8s.io/kubernetes is met in plugins/kubescheduler.
package nodeprovisioning
