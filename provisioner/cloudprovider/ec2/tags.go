// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
)

const (
	// LaunchGroupTag is the tag of an instance that names the group of the launch that made it.
	LaunchGroupTag = "jit-scheduler.io/launch-group"

	clusterTagPrefix = "kubernetes.io/cluster/"
	owned            = "owned"
)

// commonTags are on everything that a launch makes. They are also the boundary of the IAM policy: Karpenter's own
// keys, so that a cluster's existing policy holds.
func (p *Provider) commonTags(class *awsv1.EC2NodeClass, nodePool string) map[string]string {
	tags := maps.Clone(class.Spec.Tags)
	if tags == nil {
		tags = map[string]string{}
	}
	tags[clusterTagPrefix+p.opts.ClusterName] = owned
	tags[awsv1.EKSClusterNameTagKey] = p.opts.ClusterName
	tags[awsv1.NodePoolTagKey] = nodePool
	tags[awsv1.NodeClassTagKey] = class.Name
	return tags
}

// ec2Tags are sorted, so that equal tags make equal requests.
func ec2Tags(tags map[string]string) []ec2types.Tag {
	list := make([]ec2types.Tag, 0, len(tags))
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		list = append(list, ec2types.Tag{Key: aws.String(key), Value: aws.String(tags[key])})
	}
	return list
}

func tagMap(list []ec2types.Tag) map[string]string {
	tags := make(map[string]string, len(list))
	for _, tag := range list {
		tags[aws.ToString(tag.Key)] = aws.ToString(tag.Value)
	}
	return tags
}
