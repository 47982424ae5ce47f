// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
)

// image is an AMI that a node can boot from.
type image struct {
	id, name   string
	arch       string // x86_64 or arm64
	kubernetes string // minor version
	osImage    string
	rootDevice string
	owner      string
	state      string // available if empty; pending, failed, disabled, deregistered
	created    time.Time
	deprecated time.Time
	tags       map[string]string
}

type parameter struct {
	name, value string
	version     int
}

var (
	kubernetesVersions   = []string{"1.34", "1.35", "1.36", "1.37"}
	al2023Versions       = []string{"v20260304", "v20260318", "v20260415"} // the last is recommended
	bottlerocketVersions = []string{"1.50.0", "1.51.0"}                    // the last is latest
	variantsByArch       = map[string][]string{"x86_64": {"standard", "nvidia", "neuron"}, "arm64": {"standard", "nvidia"}}
	bottlerocketVariants = []string{"", "-nvidia", "-fips", "-nvidia-fips"}
	imageLife            = 2 * 365 * 24 * time.Hour
)

const imageOwner = "602401143452" // the account that publishes EKS images

func (s *Server) buildImages() {
	s.parameters = map[string]parameter{}
	for _, kubernetes := range kubernetesVersions {
		for arch, variants := range variantsByArch {
			for _, variant := range variants {
				s.addAL2023(kubernetes, arch, variant)
			}
			for _, variant := range bottlerocketVariants {
				s.addBottlerocket(kubernetes, arch, variant)
			}
		}
	}
	slices.SortFunc(s.images, func(a, b image) int { return strings.Compare(a.id, b.id) })
}

func (s *Server) addAL2023(kubernetes, arch, variant string) {
	folder := fmt.Sprintf("/aws/service/eks/optimized-ami/%s/amazon-linux-2023/%s/%s/", kubernetes, arch, variant)
	for i, version := range al2023Versions {
		name := fmt.Sprintf("amazon-eks-node-al2023-%s-%s-%s-%s", arch, variant, kubernetes, version)
		created, err := time.Parse("v20060102", version)
		if err != nil {
			continue
		}
		ami := s.addImage(image{name: name, arch: arch, kubernetes: kubernetes, osImage: "Amazon Linux 2023", rootDevice: "/dev/xvda", created: created})
		s.addParameter(folder+name+"/image_id", ami, 1)
		if i == len(al2023Versions)-1 {
			s.addParameter(folder+"recommended/image_id", ami, len(al2023Versions))
		}
	}
}

func (s *Server) addBottlerocket(kubernetes, arch, variant string) {
	folder := fmt.Sprintf("/aws/service/bottlerocket/aws-k8s-%s%s/%s/", kubernetes, variant, arch)
	for i, version := range bottlerocketVersions {
		name := fmt.Sprintf("bottlerocket-aws-k8s-%s%s-%s-v%s", kubernetes, variant, arch, version)
		created := time.Date(2026, time.February, 1+30*i, 0, 0, 0, 0, time.UTC)
		ami := s.addImage(image{name: name, arch: arch, kubernetes: kubernetes, osImage: "Bottlerocket OS " + version, rootDevice: "/dev/xvda", created: created})
		s.addParameter(folder+version+"/image_id", ami, 1)
		if i == len(bottlerocketVersions)-1 {
			s.addParameter(folder+"latest/image_id", ami, len(bottlerocketVersions))
		}
	}
}

// addImage gives the image an id that depends on its name alone, the same in every run.
func (s *Server) addImage(ami image) string {
	sum := sha256.Sum256([]byte(ami.name))
	ami.id = "ami-" + hex.EncodeToString(sum[:])[:17]
	ami.owner, ami.deprecated = imageOwner, ami.created.Add(imageLife)
	s.images = append(s.images, ami)
	return ami.id
}

func (s *Server) addParameter(name, value string, version int) {
	s.parameters[name] = parameter{name: name, value: value, version: version}
}

func (s *Server) imageByID(id string) *image {
	for i := range s.images {
		if s.images[i].id == id && s.images[i].state != deregistered {
			return &s.images[i]
		}
	}
	return nil
}

func (i image) bottlerocket() bool { return strings.HasPrefix(i.name, "bottlerocket") }
