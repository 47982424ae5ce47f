// SPDX-License-Identifier: Apache-2.0

package nodeprovisioning

import (
	"context"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// Reserve tells the ledger which node the cycle chose: it redeems the pod's entry, or frees it when room was found
// elsewhere.
func (pl *Plugin) Reserve(_ context.Context, _ fwk.CycleState, pod *v1.Pod, node string) *fwk.Status {
	pl.provisioner.Reserved(pod, node)
	return nil
}

// Unreserve gives the entry back. The framework calls it for every failure after Reserve, and may call it twice.
func (pl *Plugin) Unreserve(_ context.Context, _ fwk.CycleState, pod *v1.Pod, _ string) {
	pl.provisioner.Unreserved(pod)
}
