// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
)

func bottlerocketClass(version string) *awsv1.EC2NodeClass {
	class := demoClass()
	class.Spec.AMISelectorTerms[0].Alias = "bottlerocket@" + version
	return class
}

func TestParseAlias(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		want    alias
		wantErr string // a part of it; empty: none
	}{
		"al2023@latest":         {alias{"AL2023", "latest"}, ""},
		"al2023@v20260318":      {alias{"AL2023", "v20260318"}, ""},
		"bottlerocket@latest":   {alias{"Bottlerocket", "latest"}, ""},
		"bottlerocket@v1.50.0":  {alias{"Bottlerocket", "v1.50.0"}, ""},
		"bottlerocket@1.50.0":   {alias{"Bottlerocket", "1.50.0"}, ""},
		"al2@latest":            {alias{}, "family al2 is not supported"},
		"windows2022@latest":    {alias{}, "family windows2022 is not supported"},
		"custom@latest":         {alias{}, "family custom is not supported"},
		"AL2023@latest":         {alias{}, "family AL2023 is not supported"},
		"al2023":                {alias{}, "is not family@version"},
		"al2023@":               {alias{}, "is not family@version"},
		"@latest":               {alias{}, "is not family@version"},
		"":                      {alias{}, "is not family@version"},
		"al2023@../../x":        {alias{}, "is not a version, use latest or one like v20260318"},
		"bottlerocket@v1@v2":    {alias{}, "is not a version, use latest or one like v1.50.0"},
		"bottlerocket@v1.50 .0": {alias{}, "is not a version"},
	}
	for text, tc := range cases {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			got, err := parseAlias(text)
			if (err == nil) != (tc.wantErr == "") || (err != nil && !strings.Contains(err.Error(), tc.wantErr)) {
				t.Fatalf("got error %v, want one with %q", err, tc.wantErr)
			}
			if got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

// The status lists an image once for each set of types that it serves, newest first, with requirements by length of the
// key.
func TestAliasStatus(t *testing.T) {
	t.Parallel()
	const gpu, accelerator = "karpenter.k8s.aws/instance-gpu-count", "karpenter.k8s.aws/instance-accelerator-count"
	uses := func(arch, gpus, accelerators string) string {
		var list []string
		list = append(list, "kubernetes.io/arch In "+arch)
		if gpus != "" {
			list = append(list, gpu+" "+gpus+" ")
		}
		if accelerators != "" {
			list = append(list, accelerator+" "+accelerators+" ")
		}
		return strings.Join(list, ";") + ";"
	}
	cases := map[string][]string{
		"al2023@v20260318": {
			"amazon-eks-node-al2023-arm64-nvidia-1.37-v20260318: " + uses("arm64", "Exists", ""),
			"amazon-eks-node-al2023-arm64-standard-1.37-v20260318: " + uses("arm64", "DoesNotExist", "DoesNotExist"),
			"amazon-eks-node-al2023-x86_64-neuron-1.37-v20260318: " + uses("amd64", "", "Exists"),
			"amazon-eks-node-al2023-x86_64-nvidia-1.37-v20260318: " + uses("amd64", "Exists", ""),
			"amazon-eks-node-al2023-x86_64-standard-1.37-v20260318: " + uses("amd64", "DoesNotExist", "DoesNotExist"),
		},
		"bottlerocket@v1.50.0": {
			"bottlerocket-aws-k8s-1.37-arm64-v1.50.0: " + uses("arm64", "DoesNotExist", "DoesNotExist"),
			"bottlerocket-aws-k8s-1.37-nvidia-arm64-v1.50.0: " + uses("arm64", "Exists", ""),
			"bottlerocket-aws-k8s-1.37-nvidia-x86_64-v1.50.0: " + uses("amd64", "Exists", ""),
			"bottlerocket-aws-k8s-1.37-x86_64-v1.50.0: " + uses("amd64", "", "Exists"),
			"bottlerocket-aws-k8s-1.37-x86_64-v1.50.0: " + uses("amd64", "DoesNotExist", "DoesNotExist"),
		},
	}
	for text, want := range cases {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			c := newCloud(t)
			class := demoClass()
			class.Spec.AMISelectorTerms[0].Alias = text
			class = c.ready(t, class)
			var got []string
			for _, ami := range class.Status.AMIs {
				got = append(got, ami.Name+": "+requirementsKey(ami.Requirements))
			}
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("AMIs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBottlerocketVariants(t *testing.T) {
	t.Parallel()
	c := newCloud(t)
	class := c.ready(t, bottlerocketClass("latest"))
	p := c.classes[class.Name]
	for name, want := range map[string]string{
		"m5.large": "1.37-x86_64-v1.51.0", "m6g.large": "1.37-arm64-v1.51.0", "a1.large": "1.37-arm64-v1.51.0", "inf2.xlarge": "1.37-x86_64-v1.51.0",
		"g5.xlarge": "nvidia-x86_64-v1.51.0", "g5g.xlarge": "nvidia-arm64-v1.51.0",
	} {
		if got := p.launchable[name].image.Name; !strings.HasSuffix(got, want) {
			t.Errorf("%s boots %q, want …%s", name, got, want)
		}
	}
}

// Worked out by hand from what Bottlerocket documents: its data disk is the second one, and it reserves memory by the
// number of pods that its kubelet is told.
func TestBottlerocketCapacity(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		change                     func(*awsv1.EC2NodeClass)
		memory, storage            string // allocatable
		capacityStorage, pods, cpu string
	}{
		// 8192 MiB - 615 = 7577; reserved 255 + 11 × 29 = 574, eviction 100.
		"defaults": {func(*awsv1.EC2NodeClass) {}, "6903Mi", "17Gi", "20Gi", "29", "1930m"},
		// reserved 255 + 11 × 10 = 365.
		"maxPods": {func(c *awsv1.EC2NodeClass) {
			c.Spec.Kubelet = &awsv1.KubeletConfiguration{MaxPods: aws.Int32(10)}
		}, "7112Mi", "17Gi", "20Gi", "10", "1930m"},
		"data disk": {func(c *awsv1.EC2NodeClass) {
			c.Spec.BlockDeviceMappings = []*awsv1.BlockDeviceMapping{
				{DeviceName: aws.String("/dev/xvda"), EBS: &awsv1.BlockDevice{VolumeSize: mustQuantity(t, "8Gi")}},
				{DeviceName: aws.String("/dev/xvdb"), EBS: &awsv1.BlockDevice{VolumeSize: mustQuantity(t, "100Gi")}},
			}
		}, "6903Mi", "89Gi", "100Gi", "29", "1930m"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCloud(t)
			class := bottlerocketClass("v1.50.0")
			tc.change(class)
			it := c.typeNamed(t, c.ready(t, class), "m5.large")
			got := []string{
				it.Allocatable.Memory().String(), it.Allocatable.StorageEphemeral().String(), it.Capacity.StorageEphemeral().String(),
				it.Allocatable.Pods().String(), it.Allocatable.Cpu().String(),
			}
			if diff := cmp.Diff([]string{tc.memory, tc.storage, tc.capacityStorage, tc.pods, tc.cpu}, got); diff != "" {
				t.Errorf("memory, storage, storage capacity, pods, cpu (-want +got):\n%s", diff)
			}
		})
	}
}

// A machine of the fake reads the same settings and comes up with what was promised.
func TestBottlerocketMachine(t *testing.T) {
	t.Parallel()
	cases := map[string]func(*awsv1.EC2NodeClass){
		"defaults": func(*awsv1.EC2NodeClass) {},
		"kubelet": func(c *awsv1.EC2NodeClass) {
			c.Spec.Kubelet = fullKubelet()
			c.Spec.Kubelet.MaxPods = aws.Int32(110)
		},
		"disk": func(c *awsv1.EC2NodeClass) {
			c.Spec.BlockDeviceMappings = []*awsv1.BlockDeviceMapping{{DeviceName: aws.String("/dev/xvdb"), EBS: &awsv1.BlockDevice{VolumeSize: mustQuantity(t, "50Gi")}}}
		},
		"raid": func(c *awsv1.EC2NodeClass) {
			policy := awsv1.InstanceStorePolicyRAID0
			c.Spec.InstanceStorePolicy = &policy
		},
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCloud(t)
			class := bottlerocketClass("latest")
			change(class)
			class = c.ready(t, class)
			for _, typeName := range []string{"m5.large", "m6gd.2xlarge"} {
				it := c.typeNamed(t, class, typeName)
				c.launch(t, launchRequest(class, "g-"+typeName, c.options(t, class, onDemand, typeName)))
				instances := c.aws.Instances()
				real := instances[len(instances)-1].Allocatable
				for _, resource := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage, v1.ResourcePods} {
					promised := it.Allocatable[resource]
					got := real[string(resource)]
					if missing := promised.Value() - mustQuantity(t, got).Value(); missing < 0 || missing >= 1024 { // a machine tells whole KiB
						t.Errorf("%s: %s is %s, promised %s", typeName, resource, got, promised.String())
					}
				}
			}
		})
	}
}

func TestBottlerocketDisks(t *testing.T) {
	t.Parallel()
	var got []string
	for _, mapping := range blockDevices(&awsv1.EC2NodeClassSpec{}, awsv1.AMIFamilyBottlerocket) {
		got = append(got, aws.ToString(mapping.DeviceName)+" "+string(mapping.Ebs.VolumeType))
		if !aws.ToBool(mapping.Ebs.Encrypted) {
			t.Errorf("%s is not encrypted", aws.ToString(mapping.DeviceName))
		}
	}
	if diff := cmp.Diff([]string{"/dev/xvda gp3", "/dev/xvdb gp3"}, got); diff != "" {
		t.Errorf("disks (-want +got):\n%s", diff)
	}
}
