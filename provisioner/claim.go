// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"maps"
	"strconv"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/jit-scheduler/jit-scheduler/provisioner/lifecycle"
	"github.com/jit-scheduler/jit-scheduler/provisioner/plan"
)

// claimObject is the NodeClaim as Karpenter would write it, so that its tools and a return to it work.
func claimObject(name string, pool *karpv1.NodePool, class *awsv1.EC2NodeClass, n *plan.NewNode) *karpv1.NodeClaim {
	claim := pool.Spec.Template.ToNodeClaim().DeepCopy()
	claim.TypeMeta = metav1.TypeMeta{APIVersion: "karpenter.sh/v1", Kind: "NodeClaim"}
	claim.Name = name
	claim.Labels = mapOf(claim.Labels, map[string]string{
		karpv1.NodePoolLabelKey: pool.Name,
		awsv1.LabelNodeClass:    class.Name,
	})
	for _, r := range pool.Spec.Template.Spec.Requirements {
		// One concrete value per custom key; well-known keys get theirs at launch.
		if v, ok := n.Node.Labels[r.Key]; ok && !karpv1.WellKnownLabels.Has(r.Key) {
			claim.Labels[r.Key] = v
		}
	}
	claim.Annotations = mapOf(claim.Annotations, map[string]string{
		karpv1.NodePoolHashAnnotationKey:        pool.Hash(),
		karpv1.NodePoolHashVersionAnnotationKey: karpv1.NodePoolHashVersion,
		awsv1.AnnotationEC2NodeClassHash:        classHash(class),
		awsv1.AnnotationEC2NodeClassHashVersion: awsv1.EC2NodeClassHashVersion,
	})
	claim.Finalizers = []string{karpv1.TerminationFinalizer}
	block := true
	claim.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "karpenter.sh/v1", Kind: "NodePool", Name: pool.Name, UID: pool.UID, BlockOwnerDeletion: &block,
	}}
	claim.Spec.Requirements = n.Requirements
	claim.Spec.Resources.Requests = n.Requests
	return claim
}

// stamp writes the launch group onto a claim: with the attempt it is the launch's token, after a restart too.
func stamp(claim *karpv1.NodeClaim, group string, ordinal, size int) {
	claim.Annotations[lifecycle.GroupAnnotation] = group
	claim.Annotations[lifecycle.OrdinalAnnotation] = strconv.Itoa(ordinal)
	claim.Annotations[lifecycle.SizeAnnotation] = strconv.Itoa(size)
	claim.Annotations[lifecycle.AttemptAnnotation] = "1"
}

// mapOf is a new map with the later maps winning.
func mapOf(ms ...map[string]string) map[string]string {
	out := map[string]string{}
	for _, m := range ms {
		maps.Copy(out, m)
	}
	return out
}
