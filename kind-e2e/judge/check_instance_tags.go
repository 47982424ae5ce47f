// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"slices"
	"strings"
)

// staticTags are on every instance from its launch on: people's IAM conditions and cost reports are about them.
var staticTags = []string{labelNodePool, "karpenter.k8s.aws/ec2nodeclass", "eks:eks-cluster-name"}

const tagCluster = "kubernetes.io/cluster/" // and the cluster's name, with the value "owned"

// instanceTags: every instance that a NodeClaim launched carries the static tags.
type instanceTags struct {
	noStep

	in *input
}

func newInstanceTags(in *input) invariant { return &instanceTags{in: in} }

func (t *instanceTags) finish(_ *world, report reporter) {
	for _, instance := range t.in.instancesByLaunch() {
		var missing []string
		for _, key := range staticTags {
			if instance.Tags[key] == "" {
				missing = append(missing, key)
			}
		}
		owned := false
		for key, value := range instance.Tags {
			owned = owned || (strings.HasPrefix(key, tagCluster) && value == "owned")
		}
		if !owned {
			missing = append(missing, tagCluster+"…=owned")
		}
		if len(missing) > 0 {
			slices.Sort(missing)
			report(instance.LaunchedAt.Time, instance.ID, "lacks the tags %s", strings.Join(missing, ", "))
		}
	}
}
