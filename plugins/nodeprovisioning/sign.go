// SPDX-License-Identifier: Apache-2.0

package nodeprovisioning

import (
	"context"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// SignPod says what Filter looks at on the pod: its tolerations. The pairing is not signed: Filter enforces it on the
// hinted node too. The ledger must not be asked here: SignPod runs under the queue's lock.
func (pl *Plugin) SignPod(_ context.Context, pod *v1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	return []fwk.SignFragment{{Key: fwk.TolerationsSignerName, Value: fwk.TolerationsSigner(pod)}}, nil
}
