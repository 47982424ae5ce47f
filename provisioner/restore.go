// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"cmp"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
	"github.com/jit-scheduler/jit-scheduler/provisioner/lifecycle"
	"github.com/jit-scheduler/jit-scheduler/provisioner/plan"
	"github.com/jit-scheduler/jit-scheduler/provisioner/scheduling"
)

// restore rebuilds what a claim's object does not say: the offerings that its launch may choose from, in the order of
// the first time, and the node that is planned. false: no type of its class matches any more.
func restore(claim *karpv1.NodeClaim, offered []*cloudprovider.InstanceType) (lifecycle.Restore, bool) {
	var options []cloudprovider.LaunchOption
	wanted := scheduling.FromSpecs(claim.Spec.Requirements)
	for _, t := range offered {
		if !scheduling.Fits(claim.Spec.Resources.Requests, t.Allocatable) {
			continue
		}
		offerings := t.Offerings
		if claim.Status.ProviderID != "" { // bought at a price that nobody knows any more, perhaps
			offerings = slices.Concat(t.Offerings, t.Unpriced)
		}
		for _, o := range offerings {
			if labels := nodeLabels(claim, t, o); wanted.Matches(labels) && launchedAs(claim, labels) {
				options = append(options, cloudprovider.LaunchOption{InstanceType: t, Offering: o})
			}
		}
	}
	if len(options) == 0 {
		return lifecycle.Restore{}, false
	}
	slices.SortStableFunc(options, func(a, b cloudprovider.LaunchOption) int {
		return cmp.Or(cmp.Compare(a.Offering.Price, b.Offering.Price), cmp.Compare(a.InstanceType.Name, b.InstanceType.Name),
			cmp.Compare(a.Offering.Zone, b.Offering.Zone))
	})
	best := options[0]
	capacity, allocatable := best.InstanceType.For(claim.Spec.Resources.Requests)
	return lifecycle.Restore{Claim: claim.Name, Options: options, Node: &v1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: claim.Name, UID: types.UID("planned/" + claim.Name),
			Labels:      nodeLabels(claim, best.InstanceType, best.Offering),
			Annotations: map[string]string{plan.PlannedAnnotation: "true"},
		},
		Spec:   v1.NodeSpec{Taints: claim.Spec.Taints},
		Status: v1.NodeStatus{Capacity: capacity, Allocatable: allocatable},
	}}, true
}

// launchedAs keeps the one offering of a claim that has its machine.
func launchedAs(claim *karpv1.NodeClaim, labels map[string]string) bool {
	if claim.Status.ProviderID == "" {
		return true
	}
	for _, key := range []string{v1.LabelInstanceTypeStable, v1.LabelTopologyZone, karpv1.CapacityTypeLabelKey} {
		if claim.Labels[key] != labels[key] {
			return false
		}
	}
	return true
}

// nodeLabels are what the claim's Node will carry as this offering.
func nodeLabels(claim *karpv1.NodeClaim, t *cloudprovider.InstanceType, o cloudprovider.Offering) map[string]string {
	return mapOf(claim.Labels, t.Labels, o.Labels(), map[string]string{
		v1.LabelHostname:                claim.Name,
		"topology.ebs.csi.aws.com/zone": o.Zone,
		karpv1.NodeRegisteredLabelKey:   "true",
		karpv1.NodeInitializedLabelKey:  "true",
	})
}
