// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
)

var (
	zones     = []string{"us-east-1a", "us-east-1b", "us-east-1c"}
	nameParts = regexp.MustCompile(`^([a-z]+)([0-9]+)`)
)

func quantity(s string) resource.Quantity { return resource.MustParse(s) }

// realTypes are the on-demand types of testdata/types.txt with AL2023's allocatable, offered in three zones.
func realTypes(t testing.TB) []*cloudprovider.InstanceType {
	t.Helper()
	data, err := os.ReadFile("testdata/types.txt")
	if err != nil {
		t.Fatal(err)
	}
	var out []*cloudprovider.InstanceType
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		var name string
		var cpu, memory, pods int64
		var price float64
		if _, err := fmt.Sscan(line, &name, &cpu, &memory, &pods, &price); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		out = append(out, realType(name, cpu, memory, pods, price))
	}
	return out
}

func realType(name string, cpu, memory, pods int64, price float64) *cloudprovider.InstanceType {
	milli, reserved := float64(cpu*1000), 0.0
	for _, r := range []struct{ from, to, share float64 }{{0, 1000, .06}, {1000, 2000, .01}, {2000, 4000, .005}, {4000, 1e9, .0025}} {
		if milli > r.from {
			reserved += (math.Min(milli, r.to) - r.from) * r.share
		}
	}
	memory -= int64(math.Ceil(float64(memory) * 0.075))
	part := nameParts.FindStringSubmatch(name)
	it := &cloudprovider.InstanceType{
		Name: name,
		Labels: map[string]string{
			v1.LabelInstanceTypeStable: name, v1.LabelArchStable: "amd64", v1.LabelOSStable: "linux",
			"karpenter.k8s.aws/instance-category":   part[1][:1],
			"karpenter.k8s.aws/instance-generation": part[2],
			"karpenter.k8s.aws/instance-family":     strings.Split(name, ".")[0],
			"karpenter.k8s.aws/instance-cpu":        fmt.Sprint(cpu),
		},
		Capacity: v1.ResourceList{
			v1.ResourceCPU: *resource.NewQuantity(cpu, resource.DecimalSI), v1.ResourceMemory: *resource.NewQuantity(memory<<20, resource.BinarySI),
			v1.ResourcePods: *resource.NewQuantity(pods, resource.DecimalSI), v1.ResourceEphemeralStorage: quantity("20Gi"),
		},
		Allocatable: v1.ResourceList{
			v1.ResourceCPU:    *resource.NewMilliQuantity(cpu*1000-int64(reserved), resource.DecimalSI),
			v1.ResourceMemory: *resource.NewQuantity((memory-255-11*pods-100)<<20, resource.BinarySI),
			v1.ResourcePods:   *resource.NewQuantity(pods, resource.DecimalSI), v1.ResourceEphemeralStorage: quantity("17Gi"),
		},
	}
	for i, z := range zones {
		it.Offerings = append(it.Offerings, cloudprovider.Offering{Zone: z, ZoneID: fmt.Sprintf("use1-az%d", i+1), CapacityType: "on-demand", Price: price, Available: true})
	}
	return it
}

func requirement(key string, op v1.NodeSelectorOperator, values ...string) karpv1.NodeSelectorRequirementWithMinValues {
	return karpv1.NodeSelectorRequirementWithMinValues{Key: key, Operator: op, Values: values}
}

// defaultPool is the NodePool that people have.
func defaultPool(types []*cloudprovider.InstanceType, limits v1.ResourceList) Pool {
	np := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	np.Spec.Limits = karpv1.Limits(limits)
	np.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "default"}
	np.Spec.Template.Spec.Requirements = []karpv1.NodeSelectorRequirementWithMinValues{
		requirement(v1.LabelArchStable, v1.NodeSelectorOpIn, "amd64"),
		requirement(v1.LabelOSStable, v1.NodeSelectorOpIn, "linux"),
		requirement(karpv1.CapacityTypeLabelKey, v1.NodeSelectorOpIn, "on-demand"),
		requirement("karpenter.k8s.aws/instance-category", v1.NodeSelectorOpIn, "c", "m", "r"),
		requirement("karpenter.k8s.aws/instance-generation", v1.NodeSelectorOpGt, "2"),
	}
	return Pool{NodePool: np, Types: types}
}

// podOf makes a pod of one container; requests are name=quantity.
func podOf(name string, requests ...string) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)}}
	p.Spec.Containers = []v1.Container{{Name: "main", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{}}}}
	for _, r := range requests {
		k, q, _ := strings.Cut(r, "=")
		p.Spec.Containers[0].Resources.Requests[v1.ResourceName(k)] = quantity(q)
	}
	return p
}

// copies of a pod, numbered.
func copies(n int, pod *v1.Pod, change ...func(*v1.Pod)) []*v1.Pod {
	out := make([]*v1.Pod, n)
	for i := range out {
		out[i] = pod.DeepCopy()
		out[i].Name = fmt.Sprintf("%s-%d", pod.Name, i)
		out[i].UID = types.UID(out[i].Name)
		for _, f := range change {
			f(out[i])
		}
	}
	return out
}

// cost is what the opened nodes cost as their cheapest options, in USD per hour.
func cost(r Result) float64 {
	sum := 0.0
	for _, n := range r.Opened {
		sum += n.Options[0].Offering.Price
	}
	return sum
}

// shapesOf lists the cheapest types and the pods on them, for messages.
func shapesOf(r Result) []string {
	var out []string
	for _, n := range r.Opened {
		out = append(out, fmt.Sprintf("%s:%d", n.Options[0].InstanceType.Name, len(n.Pods)))
	}
	return out
}

// spreadOver adds a hard spread constraint over the pod's own label.
func spreadOver(key string, skew int32) func(*v1.Pod) {
	return func(p *v1.Pod) {
		p.Labels = map[string]string{"app": "x"}
		p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, v1.TopologySpreadConstraint{
			MaxSkew: skew, TopologyKey: key, WhenUnsatisfiable: v1.DoNotSchedule,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}},
		})
	}
}
