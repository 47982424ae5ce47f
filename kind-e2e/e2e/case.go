// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"time"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/judge"
)

// Case is one scenario. It gets a cluster without Nodes, an empty AWS account and a judge that has seen nothing; what it
// leaves behind is removed for it.
type Case struct {
	Name string
	// About is what must hold, in one line.
	About string
	// WithoutCRDs is for a cluster that has none of Karpenter's CRDs at first.
	WithoutCRDs bool
	// Rules that the judge decides by.
	Rules judge.Rules
	// Timeout ends a case that hangs; caseTimeout if 0.
	Timeout time.Duration
	// Run returns what the judge cannot see to be wrong.
	Run func(context.Context, *Trial) error
}

// Cases are all cases in the order in which they run.
func Cases() []Case {
	return []Case{
		crdsAbsentCase, // before another case installs them
		inflateCase, lonePodsCase, roomFirstCase, wakeUpsCase, refusedCase, volumesCase, heldRoomCase,
		kill9WithheldCase, kill9DroppedCase, kill9ParkedCase, twoReplicasCase,
		badConfigCase, endpointDownCase, karpenterLeaseCase, claimRefusedCase, launchWaitCase, slowEC2Case,
		emptinessCase, drainCase, familiesCase, faultMatrixCase,
		thousandCase, thousandLimitedCase,
	}
}
