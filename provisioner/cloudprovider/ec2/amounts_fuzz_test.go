// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"strings"
	"testing"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// FuzzKubeletAmounts: whatever a class says, its sizes add up or it is told which setting is wrong.
func FuzzKubeletAmounts(f *testing.F) {
	for _, seed := range [][3]string{
		{"100m", "200Mi", "5%"},
		{"1", "1G", "100%"},
		{"0", "0", "0%"},
		{"1e3", "1E", "1Gi"},
		{"-1", "+1", "-5%"},
		{"NaN", "Inf", "NaN%"},
		{"9223372036854775807", "9223372036854775807", "1e-300%"},
		{"1n", "0.1Ki", "2.5%"},
		{"", "%", "%%"},
		{"1e100", "1e-100", "0x1p-2%"},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	h := &hardware{name: "x", vcpus: 4, memoryMiB: 16384, cardENIs: 4, ipv4PerENI: 15, storageGB: 100, devices: map[v1.ResourceName]int64{"nvidia.com/gpu": 1}}
	p := New(Options{})
	f.Fuzz(func(t *testing.T, cpu, memory, eviction string) {
		kubelet := &awsv1.KubeletConfiguration{
			KubeReserved: map[string]string{"cpu": cpu, "memory": memory}, SystemReserved: map[string]string{"cpu": cpu, "ephemeral-storage": memory},
			EvictionHard: map[string]string{memoryAvailable: eviction, nodefsAvailable: eviction},
		}
		shape := p.shapeOf(&awsv1.EC2NodeClassSpec{Kubelet: kubelet}, awsv1.AMIFamilyAL2023)
		size, err := h.size(&shape)
		if err != nil {
			if text := err.Error(); !strings.HasPrefix(text, "kubeReserved[") && !strings.HasPrefix(text, "systemReserved[") && !strings.HasPrefix(text, "evictionHard[") {
				t.Fatalf("the error does not begin with the setting: %v", err)
			}
			return
		}
		for name, capacity := range size.capacity {
			allocatable, overhead := size.allocatable[name], size.overhead[name]
			if allocatable.Sign() < 0 || overhead.Sign() < 0 || allocatable.Cmp(capacity) > 0 {
				t.Errorf("%s: allocatable %s, overhead %s of %s", name, &allocatable, &overhead, &capacity)
			}
			if sum := allocatable.DeepCopy(); allocatable.Sign() > 0 {
				if sum.Add(overhead); sum.Cmp(capacity) != 0 {
					t.Errorf("%s: allocatable %s and overhead %s are not %s", name, &allocatable, &overhead, &capacity)
				}
			}
			for _, q := range []resource.Quantity{capacity, allocatable, overhead} {
				if again := resource.MustParse(q.String()); again.Cmp(q) != 0 {
					t.Errorf("%s: %s is not canonical", name, &q)
				}
			}
		}
	})
}

// FuzzParseListing: a catalogue file is read or refused with the line.
func FuzzParseListing(f *testing.F) {
	const good = `{"type":"a.b","arch":"amd64","vcpu":4,"memoryMiB":16384,"onDemandUSD":1,"hypervisor":"nitro","enis":4,"ipv4PerEni":15}`
	for _, seed := range []string{
		good, good + "\n" + good, "", "{}", "[]", "null", "{", good + "\n{\"type\":3}", strings.Replace(good, "16384", "1e999", 1),
		strings.Replace(good, `"vcpu":4`, `"vcpu":-4`, 1), strings.Replace(good, `"onDemandUSD":1`, `"onDemandUSD":-1`, 1),
		strings.Replace(good, "}", `,"gpus":2147483648,"gpuManufacturer":"NVIDIA"}`, 1), strings.Replace(good, "}", `,"accelerators":3,"acceleratorManufacturer":"AWS","resources":{"aws.amazon.com/neuroncore":"7"}}`, 1),
		strings.Replace(good, "}", `,"resources":{"x":"many"}}`, 1), strings.Replace(good, `"enis":4`, `"enis":4,"enis":5`, 1),
	} {
		f.Add(seed)
	}
	class := &awsv1.EC2NodeClass{Spec: awsv1.EC2NodeClassSpec{AMISelectorTerms: []awsv1.AMISelectorTerm{{Alias: "al2023@latest"}}}}
	f.Fuzz(func(t *testing.T, text string) {
		listing, err := ParseListing(strings.NewReader(text), "us-east-1", []string{"us-east-1a"}, func(int, string) {})
		if err != nil {
			if !strings.HasPrefix(err.Error(), "line ") {
				t.Errorf("the error does not begin with the line: %v", err)
			}
			return
		}
		types, err := listing.InstanceTypes(class, listing.Zones())
		if err != nil || len(types) == 0 {
			t.Fatalf("%d types, %v", len(types), err)
		}
		for _, it := range types {
			for name, amount := range it.Capacity {
				if allocatable := it.Allocatable[name]; allocatable.Sign() < 0 || allocatable.Cmp(amount) > 0 {
					t.Errorf("%s: %s: %s of %s", it.Name, name, &allocatable, &amount)
				}
			}
		}
	})
}
