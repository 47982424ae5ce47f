// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"testing"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
	"github.com/jit-scheduler/jit-scheduler/provisioner/plan"
)

func TestClaimIsWhatKarpenterWouldWrite(t *testing.T) {
	t.Parallel()
	pool := testPool("default", func(p *karpv1.NodePool) {
		p.UID = "pool"
		p.Spec.Template.Labels = map[string]string{"team": "a"}
		p.Spec.Template.Annotations = map[string]string{"note": "b"}
		p.Spec.Template.Spec.Requirements = []karpv1.NodeSelectorRequirementWithMinValues{
			{Key: "example.com/tier", Operator: v1.NodeSelectorOpIn, Values: []string{"gold", "silver"}},
			{Key: v1.LabelArchStable, Operator: v1.NodeSelectorOpIn, Values: []string{"amd64"}},
		}
		p.Spec.Template.Spec.Taints = []v1.Taint{{Key: "gpu", Effect: v1.TaintEffectNoSchedule}}
	}).pool
	class := &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	requirements := []karpv1.NodeSelectorRequirementWithMinValues{{Key: v1.LabelInstanceTypeStable, Operator: v1.NodeSelectorOpIn, Values: []string{"m"}}}
	requests := v1.ResourceList{v1.ResourceCPU: resource.MustParse("3")}
	got := claimObject("default-x", pool, class, &plan.NewNode{
		Node:         &v1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"example.com/tier": "gold", v1.LabelArchStable: "amd64"}}},
		Requirements: requirements, Requests: requests,
	})
	stamp(got, "g", 2, 3)
	block := true
	want := &karpv1.NodeClaim{
		TypeMeta: metav1.TypeMeta{APIVersion: "karpenter.sh/v1", Kind: "NodeClaim"},
		ObjectMeta: metav1.ObjectMeta{
			Name: "default-x",
			Labels: map[string]string{
				"team": "a", "example.com/tier": "gold", "karpenter.sh/nodepool": "default", "karpenter.k8s.aws/ec2nodeclass": "default",
			},
			Annotations: map[string]string{
				"note": "b", "karpenter.sh/nodepool-hash": pool.Hash(), "karpenter.sh/nodepool-hash-version": karpv1.NodePoolHashVersion,
				"karpenter.k8s.aws/ec2nodeclass-hash": class.Hash(nil), "karpenter.k8s.aws/ec2nodeclass-hash-version": awsv1.EC2NodeClassHashVersion,
				"jit-scheduler.io/launch-group": "g", "jit-scheduler.io/launch-ordinal": "2",
				"jit-scheduler.io/launch-size": "3", "jit-scheduler.io/launch-attempt": "1",
			},
			Finalizers:      []string{"karpenter.sh/termination"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "karpenter.sh/v1", Kind: "NodePool", Name: "default", UID: "pool", BlockOwnerDeletion: &block}},
		},
		Spec: karpv1.NodeClaimSpec{
			Requirements: requirements, Taints: pool.Spec.Template.Spec.Taints, NodeClassRef: pool.Spec.Template.Spec.NodeClassRef,
			Resources: karpv1.ResourceRequirements{Requests: requests},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("claimObject (-want +got):\n%s", diff)
	}
	if len(pool.Spec.Template.Labels) != 1 || len(pool.Spec.Template.Annotations) != 1 {
		t.Errorf("the pool's own template was changed: %v", pool.Spec.Template.ObjectMeta)
	}
}

func TestRestoreOffersWhatTheClaimAsksFor(t *testing.T) {
	t.Parallel()
	offered := func(name, cpu string, prices ...float64) *cloudprovider.InstanceType {
		size := v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu)}
		it := &cloudprovider.InstanceType{Name: name, Labels: map[string]string{v1.LabelInstanceTypeStable: name}, Capacity: size, Allocatable: size}
		for i, price := range prices {
			it.Offerings = append(it.Offerings, cloudprovider.Offering{Zone: string(rune('a' + i)), CapacityType: "spot", Price: price})
		}
		return it
	}
	types := []*cloudprovider.InstanceType{offered("m", "4", 3, 1), offered("l", "8", 2, 2), offered("s", "1", 0.1)}
	need := func(key string, values ...string) karpv1.NodeSelectorRequirementWithMinValues {
		return karpv1.NodeSelectorRequirementWithMinValues{Key: key, Operator: v1.NodeSelectorOpIn, Values: values}
	}
	cases := map[string]struct {
		change func(*karpv1.NodeClaim)
		want   []string
	}{
		"all that are large enough, cheapest first": {want: []string{"m/b", "l/a", "l/b", "m/a"}},
		"its requirements": {change: func(c *karpv1.NodeClaim) {
			c.Spec.Requirements = append(c.Spec.Requirements, need(v1.LabelInstanceTypeStable, "m", "s"), need(v1.LabelTopologyZone, "a"))
		}, want: []string{"m/a"}},
		"what was launched": {change: func(c *karpv1.NodeClaim) {
			c.Status.ProviderID = "aws:///b/i-1"
			c.Labels = map[string]string{v1.LabelInstanceTypeStable: "l", v1.LabelTopologyZone: "b", karpv1.CapacityTypeLabelKey: "spot"}
		}, want: []string{"l/b"}},
		"nothing fits": {change: func(c *karpv1.NodeClaim) {
			c.Spec.Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse("100")}
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
			claim.Spec.Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse("3")}
			if tc.change != nil {
				tc.change(claim)
			}
			ev, ok := restore(claim, types)
			var got []string
			for _, o := range ev.Options {
				got = append(got, o.InstanceType.Name+"/"+o.Offering.Zone)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || ok != (len(tc.want) > 0) {
				t.Errorf("restore, %t (-want +got):\n%s", ok, diff)
			}
			if !ok {
				return
			}
			best := ev.Options[0].InstanceType
			if ev.Node.Name != "c" || ev.Node.Labels[v1.LabelHostname] != "c" || ev.Node.Labels[v1.LabelInstanceTypeStable] != best.Name ||
				ev.Node.Annotations[plan.PlannedAnnotation] != "true" || ev.Node.Status.Allocatable.Cpu().Cmp(*best.Allocatable.Cpu()) != 0 {
				t.Errorf("planned node %+v is not %s", ev.Node, best.Name)
			}
		})
	}
}
