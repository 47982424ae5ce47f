// SPDX-License-Identifier: Apache-2.0

package nodeprovisioning

import (
	"context"

	v1 "k8s.io/api/core/v1"

	"github.com/jit-scheduler/jit-scheduler/provisioner"
)

// Provisioner is what the plugin and the wraps of the scheduler ask of the embedded provisioner. All methods are
// quick and do no I/O but Lead, which runs once.
type Provisioner interface {
	// Lead is called on the scheduling thread before a new leader pops its first pod: it starts the event loop and
	// returns when the ledger is rebuilt from the API server, or when it is clear that there is nothing to rebuild
	// from (no CRDs). ctx ends with leadership.
	Lead(ctx context.Context)
	// Reservation is the ledger entry of a pod; a pod that was expected takes the place kept for it.
	Reservation(pod *v1.Pod) provisioner.Reservation
	// Gates are the nodes that are about to be removed (no pod may be put there), and those whose hold is over though
	// their object still carries it. The map is never written again.
	Gates() map[string]provisioner.Gate
	// Provision decides for a pod that no ready node can take, and for the pods that wait with it.
	// preempting is true if victims of the pod are still terminating: then nothing is bought.
	Provision(pod *v1.Pod, schedulerName string, preempting bool) provisioner.Decision
	// Reserved says that a cycle chose a node for the pod, Unreserved that the choice failed later, Misfit that a
	// pod failed its cycle on the node it is paired with.
	Reserved(pod *v1.Pod, node string)
	Unreserved(pod *v1.Pod)
	Misfit(pod *v1.Pod)
}
