// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
)

// resources is a list of whole CPUs and pods.
func resources(cpu, pods int64) v1.ResourceList {
	return v1.ResourceList{
		v1.ResourceCPU:  *resource.NewQuantity(cpu, resource.DecimalSI),
		v1.ResourcePods: *resource.NewQuantity(pods, resource.DecimalSI),
	}
}

// instanceType has the CPUs of its name: m.4 has 4 and keeps one for itself.
func instanceType(name string, cpu int64) *cloudprovider.InstanceType {
	return &cloudprovider.InstanceType{
		Name:        name,
		Labels:      map[string]string{v1.LabelInstanceTypeStable: name, v1.LabelArchStable: "amd64"},
		Capacity:    resources(cpu, 10),
		Allocatable: resources(cpu-1, 10),
	}
}

var (
	typeM4 = instanceType("m.4", 4)
	typeM8 = instanceType("m.8", 8)
)

func option(t *cloudprovider.InstanceType, zone string, price float64) cloudprovider.LaunchOption {
	return cloudprovider.LaunchOption{InstanceType: t, Offering: cloudprovider.Offering{
		Zone: zone, CapacityType: karpv1.CapacityTypeOnDemand, Price: price, Available: true,
	}}
}

func testOptions() []cloudprovider.LaunchOption {
	return []cloudprovider.LaunchOption{option(typeM4, "a", 0.1), option(typeM4, "b", 0.1), option(typeM8, "a", 0.2)}
}

// testPod makes a pod; one whose name begins with t tolerates nodes that are not ready.
func testPod(name string) Pod {
	return Pod{
		UID: types.UID(name), Namespace: "default", Name: name, Requests: resources(1, 1),
		ToleratesNotReady: strings.HasPrefix(name, "t"),
	}
}

func testClaim(group, name string, ordinal, size int) *karpv1.NodeClaim {
	return &karpv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name:       name,
			Labels:     map[string]string{karpv1.NodePoolLabelKey: "default"},
			Finalizers: []string{karpv1.TerminationFinalizer},
			Annotations: map[string]string{
				GroupAnnotation: group, OrdinalAnnotation: strconv.Itoa(ordinal),
				SizeAnnotation: strconv.Itoa(size), AttemptAnnotation: "1",
			},
		},
		Spec: karpv1.NodeClaimSpec{
			StartupTaints: []v1.Taint{{Key: "example.com/starting", Effect: v1.TaintEffectNoSchedule}},
			Resources:     karpv1.ResourceRequirements{Requests: resources(1, 1)},
		},
	}
}

func plannedNode(name string) *v1.Node {
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelHostname: name}},
		Status:     v1.NodeStatus{Capacity: typeM4.Capacity, Allocatable: typeM4.Allocatable},
	}
}

func newClaim(group, name string, ordinal, size int, pods ...Pod) NewClaim {
	return NewClaim{
		Object: testClaim(group, name, ordinal, size), Node: plannedNode(name),
		Options: testOptions(), Daemons: v1.ResourceList{}, Pods: pods,
	}
}

func testPool(consolidateAfter string) *karpv1.NodePool {
	p := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	p.Spec.Disruption.ConsolidateAfter = karpv1.MustParseNillableDuration(consolidateAfter)
	p.Spec.Disruption.Budgets = []karpv1.Budget{{Nodes: "10%"}}
	return p
}
