// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
)

// listed parses one type and lists it for the class.
func listed(t *testing.T, row string, spec awsv1.EC2NodeClassSpec) *cloudprovider.InstanceType {
	t.Helper()
	listing, err := ParseListing(strings.NewReader(row), "us-east-1", []string{"us-east-1a"}, func(line int, field string) { t.Errorf("line %d: unknown field %s", line, field) })
	if err != nil {
		t.Fatal(err)
	}
	if len(spec.AMISelectorTerms) == 0 && spec.AMIFamily == nil {
		spec.AMISelectorTerms = []awsv1.AMISelectorTerm{{Alias: "al2023@latest"}}
	}
	types, err := listing.InstanceTypes(&awsv1.EC2NodeClass{Spec: spec}, []Zone{{Name: "us-east-1a", ID: "use1-az1"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(types) != 1 {
		t.Fatalf("%d types, want 1", len(types))
	}
	return types[0]
}

func texts(list v1.ResourceList) map[string]string {
	out := map[string]string{}
	for name, amount := range list {
		out[string(name)] = amount.String()
	}
	return out
}

// Types that AWS does not sell, with values worked out by hand. Nothing can be looked up for them: it must follow from
// what is said of them.
func TestPerturbedCatalogue(t *testing.T) {
	t.Parallel()
	const rest = `"hypervisor":"nitro","cpuManufacturer":"intel","clockMHz":3100,"onDemandUSD":1`
	cases := map[string]struct {
		row                             string
		spec                            awsv1.EC2NodeClassSpec
		capacity, overhead, allocatable map[string]string
		labels                          map[string]string // some of them; "-": must not be there
	}{
		"a known name with other hardware": {
			row: `{"type":"m5.large","arch":"amd64","vcpu":7,"memoryMiB":10001,"enis":5,"ipv4PerEni":11,` + rest + `}`,
			// 10001 − ⌈750.075⌉; 5 × 10 + 2.
			capacity: map[string]string{"cpu": "7", "memory": "9250Mi", "ephemeral-storage": "20Gi", "pods": "52"},
			// 60 + 10 + 10 + 3 × 2.5 in whole milli-CPUs; 11 × 52 + 255 + 100.
			overhead:    map[string]string{"cpu": "87m", "memory": "927Mi", "ephemeral-storage": "3Gi"},
			allocatable: map[string]string{"cpu": "6913m", "memory": "8323Mi", "ephemeral-storage": "17Gi", "pods": "52"},
			labels: map[string]string{
				"karpenter.k8s.aws/instance-cpu": "7", "karpenter.k8s.aws/instance-memory": "10001",
				"karpenter.k8s.aws/instance-network-bandwidth": "-", "karpenter.k8s.aws/instance-local-nvme": "-",
			},
		},
		"one CPU on arm64": {
			row:         `{"type":"qq1.tiny","arch":"arm64","vcpu":1,"memoryMiB":1000,"enis":2,"ipv4PerEni":2,` + rest + `}`,
			capacity:    map[string]string{"cpu": "1", "memory": "865Mi", "ephemeral-storage": "20Gi", "pods": "4"}, // 936 − ⌈70.2⌉
			overhead:    map[string]string{"cpu": "60m", "memory": "399Mi", "ephemeral-storage": "3Gi"},
			allocatable: map[string]string{"cpu": "940m", "memory": "466Mi", "ephemeral-storage": "17Gi", "pods": "4"},
			labels:      map[string]string{"kubernetes.io/arch": "arm64", "karpenter.k8s.aws/instance-category": "qq", "karpenter.k8s.aws/instance-generation": "1"},
		},
		"too small for what it reserves": {
			row:         `{"type":"qq1.none","arch":"amd64","vcpu":1,"memoryMiB":256,"enis":4,"ipv4PerEni":15,` + rest + `}`,
			capacity:    map[string]string{"cpu": "1", "memory": "236Mi", "ephemeral-storage": "20Gi", "pods": "58"},
			overhead:    map[string]string{"cpu": "60m", "memory": "993Mi", "ephemeral-storage": "3Gi"},
			allocatable: map[string]string{"cpu": "940m", "memory": "0", "ephemeral-storage": "17Gi", "pods": "58"},
		},
		"bare metal of terabytes": {
			row: `{"type":"u-99tb7.metal","arch":"amd64","vcpu":448,"memoryMiB":1048576,"enis":15,"ipv4PerEni":50,"branchEnis":7,"hypervisor":"","bareMetal":true,"cpuManufacturer":"intel","clockMHz":0,"ebsMbps":38000,"networkMbps":123}`,
			// 1048576 − ⌈78643.2⌉; 15 × 49 + 2.
			capacity: map[string]string{"cpu": "448", "memory": "969932Mi", "ephemeral-storage": "20Gi", "pods": "737", "vpc.amazonaws.com/pod-eni": "7"},
			// 60 + 10 + 10 + 444 × 2.5; 11 × 737 + 255 + 100.
			overhead:    map[string]string{"cpu": "1190m", "memory": "8462Mi", "ephemeral-storage": "3Gi"},
			allocatable: map[string]string{"cpu": "446810m", "memory": "961470Mi", "ephemeral-storage": "17Gi", "pods": "737", "vpc.amazonaws.com/pod-eni": "7"},
			labels: map[string]string{
				"karpenter.k8s.aws/instance-category": "u", "karpenter.k8s.aws/instance-generation": "7", "karpenter.k8s.aws/instance-family": "u-99tb7",
				"karpenter.k8s.aws/instance-hypervisor": "", "karpenter.k8s.aws/instance-size": "metal", "karpenter.k8s.aws/instance-ebs-bandwidth": "38000",
				"karpenter.k8s.aws/instance-network-bandwidth": "123", "karpenter.k8s.aws/instance-cpu-sustained-clock-speed-mhz": "0",
			},
		},
		"GPUs and EFA on several cards": {
			row: `{"type":"gg8.mega","arch":"amd64","vcpu":16,"memoryMiB":65536,"enis":12,"ipv4PerEni":10,"networkCards":4,"defaultCardEnis":3,"efa":4,"gpus":2,"gpuManufacturer":"nvidia","gpuName":"z9000","gpuMemoryMiB":4096,"nvmeGB":100,` + rest + `}`,
			// 65536 − ⌈4915.2⌉; the 3 interfaces of the first card × 9 + 2.
			capacity:    map[string]string{"cpu": "16", "memory": "60620Mi", "ephemeral-storage": "20Gi", "pods": "29", "nvidia.com/gpu": "2", "vpc.amazonaws.com/efa": "4"},
			overhead:    map[string]string{"cpu": "110m", "memory": "674Mi", "ephemeral-storage": "3Gi"},
			allocatable: map[string]string{"cpu": "15890m", "memory": "59946Mi", "ephemeral-storage": "17Gi", "pods": "29", "nvidia.com/gpu": "2", "vpc.amazonaws.com/efa": "4"},
			labels: map[string]string{
				"karpenter.k8s.aws/instance-gpu-name": "z9000", "karpenter.k8s.aws/instance-gpu-manufacturer": "nvidia", "karpenter.k8s.aws/instance-gpu-count": "2",
				"karpenter.k8s.aws/instance-gpu-memory": "4096", "karpenter.k8s.aws/instance-local-nvme": "100", "karpenter.k8s.aws/instance-accelerator-count": "-",
			},
		},
		"a fraction of a GPU": {
			row:         `{"type":"gg8f.mini","arch":"amd64","vcpu":2,"memoryMiB":8192,"enis":2,"ipv4PerEni":10,"gpus":0,"gpuManufacturer":"amd","gpuName":"z1","gpuMemoryMiB":512,` + rest + `}`,
			capacity:    map[string]string{"cpu": "2", "memory": "7577Mi", "ephemeral-storage": "20Gi", "pods": "20"},
			overhead:    map[string]string{"cpu": "70m", "memory": "575Mi", "ephemeral-storage": "3Gi"},
			allocatable: map[string]string{"cpu": "1930m", "memory": "7002Mi", "ephemeral-storage": "17Gi", "pods": "20"},
			labels:      map[string]string{"karpenter.k8s.aws/instance-gpu-count": "0", "karpenter.k8s.aws/instance-gpu-manufacturer": "amd"},
		},
		"Neuron, disks and settings": {
			row: `{"type":"tt4.mega","arch":"amd64","vcpu":4,"memoryMiB":20000,"enis":4,"ipv4PerEni":5,"accelerators":3,"acceleratorName":"thinker","acceleratorManufacturer":"aws","resources":{"aws.amazon.com/neuron":"3","aws.amazon.com/neuroncore":"24"},"nvmeGB":50,` + rest + `}`,
			spec: awsv1.EC2NodeClassSpec{
				InstanceStorePolicy: new(awsv1.InstanceStorePolicyRAID0),
				Kubelet: &awsv1.KubeletConfiguration{
					MaxPods: aws.Int32(40), PodsPerCore: aws.Int32(5), SystemReserved: map[string]string{"cpu": "0.1", "memory": "1G", "pid": "100"},
					KubeReserved: map[string]string{"cpu": "300m"}, EvictionHard: map[string]string{"memory.available": "2.5%"}, EvictionSoft: map[string]string{"memory.available": "90%"},
					EvictionSoftGracePeriod: map[string]metav1.Duration{"memory.available": {Duration: time.Minute}},
				},
			},
			// 20000 − 1500 MiB; 40 pods, but 5 a core.
			capacity: map[string]string{"cpu": "4", "memory": "18500Mi", "ephemeral-storage": "50G", "pods": "20", "aws.amazon.com/neuron": "3", "aws.amazon.com/neuroncore": "24"},
			// 300 + 100; (11 × 18 + 255) MiB + 10⁹ + 462.5 MiB, all addresses counted; 1 GiB + 5 × 10⁹.
			overhead:    map[string]string{"cpu": "400m", "memory": "1959971328", "ephemeral-storage": "6073741824", "pid": "100"},
			allocatable: map[string]string{"cpu": "3600m", "memory": "17438684672", "ephemeral-storage": "43926258176", "pods": "20", "aws.amazon.com/neuron": "3", "aws.amazon.com/neuroncore": "24"},
			labels: map[string]string{
				"karpenter.k8s.aws/instance-accelerator-name": "thinker", "karpenter.k8s.aws/instance-accelerator-manufacturer": "aws",
				"karpenter.k8s.aws/instance-accelerator-count": "3", "karpenter.k8s.aws/instance-gpu-count": "-",
			},
		},
		"accelerators of another maker": {
			row:         `{"type":"dd7q.mega","arch":"amd64","vcpu":2,"memoryMiB":8192,"enis":3,"ipv4PerEni":10,"accelerators":8,"acceleratorName":"Ai 100","acceleratorManufacturer":"Some Maker",` + rest + `}`,
			capacity:    map[string]string{"cpu": "2", "memory": "7577Mi", "ephemeral-storage": "20Gi", "pods": "29"},
			overhead:    map[string]string{"cpu": "70m", "memory": "674Mi", "ephemeral-storage": "3Gi"},
			allocatable: map[string]string{"cpu": "1930m", "memory": "6903Mi", "ephemeral-storage": "17Gi", "pods": "29"},
			labels:      map[string]string{"karpenter.k8s.aws/instance-accelerator-name": "ai-100", "karpenter.k8s.aws/instance-accelerator-manufacturer": "some-maker"},
		},
		"Bottlerocket reserves for the pods that it is told": {
			row: `{"type":"qq1.x","arch":"amd64","vcpu":2,"memoryMiB":8192,"enis":3,"ipv4PerEni":10,` + rest + `}`,
			spec: awsv1.EC2NodeClassSpec{
				AMISelectorTerms: []awsv1.AMISelectorTerm{{Alias: "bottlerocket@latest"}}, Kubelet: &awsv1.KubeletConfiguration{MaxPods: aws.Int32(10)},
				BlockDeviceMappings: []*awsv1.BlockDeviceMapping{
					{DeviceName: aws.String("/dev/xvdb"), EBS: &awsv1.BlockDevice{VolumeSize: mustQuantity(t, "50Gi")}},
					{DeviceName: aws.String("/dev/xvda"), EBS: &awsv1.BlockDevice{VolumeSize: mustQuantity(t, "9Gi")}},
				},
			},
			capacity:    map[string]string{"cpu": "2", "memory": "7577Mi", "ephemeral-storage": "50Gi", "pods": "10"},
			overhead:    map[string]string{"cpu": "70m", "memory": "465Mi", "ephemeral-storage": "6Gi"}, // 11 × 10 + 255 + 100
			allocatable: map[string]string{"cpu": "1930m", "memory": "7112Mi", "ephemeral-storage": "44Gi", "pods": "10"},
		},
		"a custom image's last disk": {
			row: `{"type":"qq1.x","arch":"amd64","vcpu":2,"memoryMiB":8192,"enis":3,"ipv4PerEni":10,` + rest + `}`,
			spec: awsv1.EC2NodeClassSpec{
				AMIFamily: aws.String(awsv1.AMIFamilyCustom), Kubelet: &awsv1.KubeletConfiguration{MaxPods: aws.Int32(10)},
				BlockDeviceMappings: []*awsv1.BlockDeviceMapping{
					{DeviceName: aws.String("/dev/xvda"), EBS: &awsv1.BlockDevice{VolumeSize: mustQuantity(t, "9Gi")}},
					{DeviceName: aws.String("/dev/sdz"), EBS: &awsv1.BlockDevice{VolumeSize: mustQuantity(t, "50Gi")}},
				},
			},
			capacity:    map[string]string{"cpu": "2", "memory": "7577Mi", "ephemeral-storage": "50Gi", "pods": "10"},
			overhead:    map[string]string{"cpu": "70m", "memory": "674Mi", "ephemeral-storage": "6Gi"}, // 11 × 29 + 255 + 100
			allocatable: map[string]string{"cpu": "1930m", "memory": "6903Mi", "ephemeral-storage": "44Gi", "pods": "10"},
		},
		"no address for pods": {
			row:         `{"type":"noname","arch":"amd64","vcpu":2,"memoryMiB":8192,"enis":0,"ipv4PerEni":0,` + rest + `}`,
			capacity:    map[string]string{"cpu": "2", "memory": "7577Mi", "ephemeral-storage": "20Gi", "pods": "0"},
			overhead:    map[string]string{"cpu": "70m", "memory": "355Mi", "ephemeral-storage": "3Gi"},
			allocatable: map[string]string{"cpu": "1930m", "memory": "7222Mi", "ephemeral-storage": "17Gi", "pods": "0"},
			labels:      map[string]string{"karpenter.k8s.aws/instance-family": "noname", "karpenter.k8s.aws/instance-category": "-"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			it := listed(t, c.row, c.spec)
			for what, lists := range map[string][2]map[string]string{
				"capacity": {c.capacity, texts(it.Capacity)}, "overhead": {c.overhead, texts(it.Overhead)}, "allocatable": {c.allocatable, texts(it.Allocatable)},
			} {
				if diff := cmp.Diff(lists[0], lists[1]); diff != "" {
					t.Errorf("%s (-want +got):\n%s", what, diff)
				}
			}
			for _, key := range slices.Sorted(maps.Keys(c.labels)) {
				if got, ok := it.Labels[key]; got != strings.TrimPrefix(c.labels[key], "-") || ok != (c.labels[key] != "-") {
					t.Errorf("label %s is %q (there: %v), want %q", key, got, ok, c.labels[key])
				}
			}
		})
	}
}

// B43: pods have the addresses of the default card's interfaces, without each interface's own.
func TestB43DefaultCardOnly(t *testing.T) {
	t.Parallel()
	const shape = `{"type":"qq1.x","arch":"amd64","vcpu":4,"memoryMiB":16384,"onDemandUSD":1,"hypervisor":"nitro","cpuManufacturer":"intel","enis":%d,"ipv4PerEni":%d,"networkCards":%d,"defaultCardEnis":%d,"branchEnis":%d}`
	cases := map[string]struct {
		row  string
		pods int64
	}{
		"two cards":                 {fmt.Sprintf(shape, 30, 50, 2, 15, 0), 15*49 + 2},
		"security groups for pods":  {fmt.Sprintf(shape, 4, 15, 1, 4, 18), 4*14 + 2}, // branch interfaces are a resource of their own
		"neighbour: a card of none": {fmt.Sprintf(shape, 8, 50, 8, 0, 0), 0},
		"neighbour: one address":    {fmt.Sprintf(shape, 2, 1, 1, 2, 0), 2},
	}
	for name, c := range cases {
		if got := listed(t, c.row, awsv1.EC2NodeClassSpec{}).Capacity.Pods().Value(); got != c.pods {
			t.Errorf("%s: %d pods, want %d", name, got, c.pods)
		}
		// Prefixes change what an address is, not how many the arithmetic counts: users set maxPods.
		if got := listed(t, c.row, awsv1.EC2NodeClassSpec{IPPrefixCount: aws.Int32(4)}).Capacity.Pods().Value(); got != c.pods {
			t.Errorf("%s, with prefixes: %d pods, want %d", name, got, c.pods)
		}
	}
	// Which card is the default is for EC2 to say: neighbour.
	info := (&row{
		Type: "qq1.x", Arch: "amd64", VCPU: aws.Int64(1), MemoryMiB: aws.Int64(1), ENIs: aws.Int64(9), IPv4PerENI: aws.Int64(10), DefaultCardENIs: aws.Int64(2),
	}).info()
	second := info.NetworkInfo.NetworkCards[0]
	second.NetworkCardIndex, second.MaximumNetworkInterfaces = aws.Int32(1), aws.Int32(7)
	info.NetworkInfo.NetworkCards = append(info.NetworkInfo.NetworkCards, second)
	info.NetworkInfo.DefaultNetworkCardIndex = aws.Int32(1)
	if got := newHardware(&info, "us-east-1", typeLimits{}).eniPods(0); got != 7*9+2 {
		t.Errorf("second card the default: %d pods, want %d", got, 7*9+2)
	}
	reserving := New(Options{ReservedENIs: 1}).shapeOf(&awsv1.EC2NodeClassSpec{}, awsv1.AMIFamilyAL2023)
	if got := newHardware(&info, "us-east-1", typeLimits{}).pods(&reserving); got != 6*9+2 {
		t.Errorf("an interface reserved: %d pods, want %d", got, 6*9+2)
	}
}

// B44: a disk in decimal units is no smaller than written, and how a size is written is no difference between disks.
func TestB44DecimalDisk(t *testing.T) {
	t.Parallel()
	const row = `{"type":"qq1.x","arch":"amd64","vcpu":4,"memoryMiB":16384,"onDemandUSD":1,"hypervisor":"nitro","cpuManufacturer":"intel","enis":4,"ipv4PerEni":15}`
	cases := map[string]struct {
		size, capacity string
		volumeGiB      int32
	}{
		"20G":                  {"20G", "20G", 19},
		"20Gi":                 {"20Gi", "20Gi", 20},
		"neighbour: 1T":        {"1T", "1T", 932},
		"neighbour: as bytes":  {"21474836480", "20Gi", 20},
		"neighbour: a byte up": {"21474836481", "21474836481", 21},
	}
	for name, c := range cases {
		spec := awsv1.EC2NodeClassSpec{BlockDeviceMappings: []*awsv1.BlockDeviceMapping{{
			DeviceName: aws.String("/dev/xvda"), EBS: &awsv1.BlockDevice{VolumeSize: mustQuantity(t, c.size)},
		}}}
		if got := listed(t, row, spec).Capacity.StorageEphemeral().String(); got != c.capacity {
			t.Errorf("%s: capacity %s, want %s", name, got, c.capacity)
		}
		if got := aws.ToInt32(blockDevices(&spec, awsv1.AMIFamilyAL2023)[0].Ebs.VolumeSize); got != c.volumeGiB {
			t.Errorf("%s: a volume of %d GiB, want %d", name, got, c.volumeGiB)
		}
	}
}

func TestListingOfOddClasses(t *testing.T) {
	t.Parallel()
	const row = `{"type":"a1.x","arch":"arm64","vcpu":4,"memoryMiB":16384,"onDemandUSD":1,"hypervisor":"nitro","cpuManufacturer":"aws","enis":4,"ipv4PerEni":15}`
	available := func(spec awsv1.EC2NodeClassSpec) bool { return listed(t, row, spec).Offerings[0].Available }
	if available(awsv1.EC2NodeClassSpec{}) {
		t.Error("AL2023 boots on the family that lacks what it needs")
	}
	custom := awsv1.EC2NodeClassSpec{AMIFamily: aws.String(awsv1.AMIFamilyCustom)}
	if !available(custom) {
		t.Error("a custom image does not boot there")
	}
	custom.CPUOptions = &awsv1.CPUOptions{NestedVirtualization: new("enabled")}
	if available(custom) {
		t.Error("nested virtualization without the feature")
	}
}
