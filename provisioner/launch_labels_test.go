// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"testing"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// A leader that is killed between the writes of a launch's outcome leaves claims that say which machine they got. The
// replay must be the request that the token was used for all the same.
func TestLaunchLabelsAreThoseOfBefore(t *testing.T) {
	t.Parallel()
	before := map[string]string{karpv1.NodePoolLabelKey: "default", "team": "a", "karpenter.k8s.aws/ec2nodeclass": "default"}
	after := mapOf(before, map[string]string{
		v1.LabelInstanceTypeStable: "m5.large", v1.LabelTopologyZone: "us-east-1a", "topology.k8s.aws/zone-id": "use1-az1",
		karpv1.CapacityTypeLabelKey: "spot", v1.LabelArchStable: "amd64", v1.LabelOSStable: "linux",
		awsv1.LabelInstanceFamily: "m5", awsv1.LabelInstanceCPU: "2", awsv1.LabelInstanceEncryptionInTransitSupported: "true",
	})
	claim := &karpv1.NodeClaim{}
	claim.Labels = after
	if diff := cmp.Diff(before, launchLabels(claim)); diff != "" {
		t.Errorf("labels at the replay (-at the launch +now):\n%s", diff)
	}
	claim.Labels = before
	if diff := cmp.Diff(before, launchLabels(claim)); diff != "" {
		t.Errorf("labels at the launch (-claim's +launch's):\n%s", diff)
	}
}
