// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	v1 "k8s.io/api/core/v1"
)

// family is what differs between image families: where images are published, and how one boots.
type family struct {
	// images are the places of an alias's images; nil: the family has no aliases.
	images func(kubernetes, version string) []published
	// dataDevice is the disk that holds pods' data, empty where the image decides.
	dataDevice string
	// disks are attached when the class names none; in GiB by device.
	disks []disk
	// reservesByMaxPods: the image reserves memory by the number of pods that the kubelet is told, not by the
	// type's addresses.
	reservesByMaxPods bool
}

type disk struct {
	device string
	size   int64 // bytes
}

const (
	bottlerocketSystemDisk = 6 * gibibyte
	bottlerocketDataDevice = "/dev/xvdb"
)

var families = map[string]family{
	awsv1.AMIFamilyAL2023: {images: al2023Images, dataDevice: defaultDeviceAL, disks: []disk{{defaultDeviceAL, defaultRootDisk}}},
	awsv1.AMIFamilyBottlerocket: {
		images: bottlerocketImages, dataDevice: bottlerocketDataDevice, reservesByMaxPods: true,
		disks: []disk{{defaultDeviceAL, bottlerocketSystemDisk}, {bottlerocketDataDevice, defaultRootDisk}},
	},
	awsv1.AMIFamilyCustom: {},
}

// published is an image that an alias stands for.
type published struct {
	path string // of the parameter with its id
	// requirements say on which types it is used; it serves a type that meets one of the lists.
	requirements [][]v1.NodeSelectorRequirement
}

// variant is one build of an image.
type variant struct{ arch, name string }

const (
	standardVariant = "standard"
	nvidiaVariant   = "nvidia"
	neuronVariant   = "neuron"

	archX86, archARM = "x86_64", "arm64"
)

var al2023Variants = []variant{
	{archX86, standardVariant}, {archX86, nvidiaVariant}, {archX86, neuronVariant}, {archARM, standardVariant}, {archARM, nvidiaVariant},
}

// variantRequirements say on which types a variant is used.
func variantRequirements(name string) []v1.NodeSelectorRequirement {
	need := func(key string, operator v1.NodeSelectorOperator) v1.NodeSelectorRequirement {
		return v1.NodeSelectorRequirement{Key: key, Operator: operator}
	}
	switch name {
	case nvidiaVariant:
		return []v1.NodeSelectorRequirement{need(awsv1.LabelInstanceGPUCount, v1.NodeSelectorOpExists)}
	case neuronVariant:
		return []v1.NodeSelectorRequirement{need(awsv1.LabelInstanceAcceleratorCount, v1.NodeSelectorOpExists)}
	}
	return []v1.NodeSelectorRequirement{
		need(awsv1.LabelInstanceGPUCount, v1.NodeSelectorOpDoesNotExist),
		need(awsv1.LabelInstanceAcceleratorCount, v1.NodeSelectorOpDoesNotExist),
	}
}

func al2023Images(kubernetes, version string) []published {
	var list []published
	for _, v := range al2023Variants {
		list = append(list, published{al2023Path(kubernetes, version, v), [][]v1.NodeSelectorRequirement{variantRequirements(v.name)}})
	}
	return list
}

// al2023Path is where EKS publishes the image id of a variant.
func al2023Path(kubernetes, version string, v variant) string {
	release := "recommended"
	if version != awsv1.AliasVersionLatest {
		release = fmt.Sprintf("amazon-eks-node-al2023-%s-%s-%s-%s", v.arch, v.name, kubernetes, version)
	}
	return fmt.Sprintf("/aws/service/eks/optimized-ami/%s/amazon-linux-2023/%s/%s/%s/image_id", kubernetes, v.arch, v.name, release)
}

// bottlerocketImages: there is no build for Neuron, the standard one serves those types.
func bottlerocketImages(kubernetes, version string) []published {
	version = strings.TrimPrefix(version, "v") // "latest" has none
	standard, nvidia, neuron := variantRequirements(standardVariant), variantRequirements(nvidiaVariant), variantRequirements(neuronVariant)
	path := func(suffix, arch string) string {
		return fmt.Sprintf("/aws/service/bottlerocket/aws-k8s-%s%s/%s/%s/image_id", kubernetes, suffix, arch, version)
	}
	return []published{
		{path("", archX86), [][]v1.NodeSelectorRequirement{standard, neuron}},
		{path("", archARM), [][]v1.NodeSelectorRequirement{standard}},
		{path("-nvidia", archX86), [][]v1.NodeSelectorRequirement{nvidia}},
		{path("-nvidia", archARM), [][]v1.NodeSelectorRequirement{nvidia}},
	}
}

// alias is a term's alias, taken apart.
type alias struct{ family, version string }

// parseAlias reads family@version. Karpenter's own parser ends the process on a family that it does not know.
func parseAlias(text string) (alias, error) {
	name, version, ok := strings.Cut(text, "@")
	if !ok || name == "" || version == "" {
		return alias{}, fmt.Errorf("alias %q is not family@version", text)
	}
	for key, of := range families {
		if of.images == nil || strings.ToLower(key) != name {
			continue
		}
		if !validVersion(version) {
			return alias{}, fmt.Errorf("alias %q: %q is not a version, use latest or one like %s", text, version, exampleVersions[key])
		}
		return alias{key, version}, nil
	}
	return alias{}, fmt.Errorf("alias %q: family %s is not supported, use al2023@<version> or bottlerocket@<version>", text, name)
}

var exampleVersions = map[string]string{awsv1.AMIFamilyAL2023: "v20260318", awsv1.AMIFamilyBottlerocket: "v1.50.0"}

// validVersion keeps what would lead to another parameter out of the path.
func validVersion(version string) bool {
	return version[0] != '.' && !strings.Contains(version, "..") && !slices.ContainsFunc([]byte(version), func(b byte) bool {
		return b != '.' && b != '-' && b != '_' && b != '+' && (b < '0' || b > '9') && (b < 'a' || b > 'z') && (b < 'A' || b > 'Z')
	})
}

// familyOf returns the class's image family, or what is wrong with its image terms.
func familyOf(spec *awsv1.EC2NodeClassSpec) (string, *fault) {
	name := aws.ToString(spec.AMIFamily)
	if _, ok := families[name]; !ok && name != "" {
		return "", &fault{"UnsupportedAMIFamily", fmt.Sprintf("spec.amiFamily %s is not supported, use AL2023, Bottlerocket or Custom", name)}
	}
	for i := range spec.AMISelectorTerms {
		text := spec.AMISelectorTerms[i].Alias
		if text == "" {
			continue
		}
		of, err := parseAlias(text)
		switch {
		case err != nil:
			return "", &fault{"UnsupportedAlias", fmt.Sprintf("spec.amiSelectorTerms[%d].%v", i, err)}
		case name == "":
			name = of.family
		case name != of.family && name != awsv1.AMIFamilyCustom:
			return "", &fault{"UnsupportedAlias", fmt.Sprintf("spec.amiSelectorTerms[%d].alias %q is not of family %s", i, text, name)}
		}
	}
	return cmp.Or(name, awsv1.AMIFamilyCustom), nil
}
