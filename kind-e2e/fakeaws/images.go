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
	created    time.Time
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
			s.addBottlerocket(kubernetes, arch, "")
			s.addBottlerocket(kubernetes, arch, "-nvidia")
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
	s.images = append(s.images, ami)
	return ami.id
}

func (s *Server) addParameter(name, value string, version int) {
	s.parameters[name] = parameter{name: name, value: value, version: version}
}

func (s *Server) imageByID(id string) *image {
	for i := range s.images { // fixed after New
		if s.images[i].id == id {
			return &s.images[i]
		}
	}
	return nil
}

func (i image) bottlerocket() bool { return strings.HasPrefix(i.name, "bottlerocket") }

type imageItem struct {
	ID              string      `xml:"imageId"`
	Name            string      `xml:"name"`
	Architecture    string      `xml:"architecture"`
	CreationDate    string      `xml:"creationDate"`
	DeprecationTime string      `xml:"deprecationTime"`
	State           string      `xml:"imageState"`
	OwnerID         string      `xml:"imageOwnerId"`
	OwnerAlias      string      `xml:"imageOwnerAlias"`
	Public          bool        `xml:"isPublic"`
	Type            string      `xml:"imageType"`
	Virtualization  string      `xml:"virtualizationType"`
	RootDeviceName  string      `xml:"rootDeviceName"`
	RootDeviceType  string      `xml:"rootDeviceType"`
	ENA             bool        `xml:"enaSupport"`
	Mappings        []imageDisk `xml:"blockDeviceMapping>item"`
}

type imageDisk struct {
	DeviceName string `xml:"deviceName"`
	SnapshotID string `xml:"ebs>snapshotId"`
	Size       int    `xml:"ebs>volumeSize"`
	Type       string `xml:"ebs>volumeType"`
	Delete     bool   `xml:"ebs>deleteOnTermination"`
}

type describeImagesReply struct {
	Images    []imageItem `xml:"imagesSet>item"`
	NextToken string      `xml:"nextToken,omitempty"`
}

func describeImages(s *Server, r *request) (any, error) {
	ids, owners, filters := r.form.list("ImageId"), r.form.list("Owner"), r.form.filters()
	for _, id := range ids {
		if s.imageByID(id) == nil {
			return nil, errorf("InvalidAMIID.NotFound", "The image id '[%s]' does not exist", id)
		}
	}
	if r.form.bool("DryRun") {
		return nil, errDryRun()
	}
	var found []imageItem
	for _, ami := range s.images {
		deprecated := !ami.created.Add(imageLife).After(time.Now())
		ok, err := matches(filters, nil, attributes{
			"image-id": {ami.id}, "name": {ami.name}, "state": {"available"}, "architecture": {ami.arch}, "owner-id": {imageOwner}, "owner-alias": {"amazon"},
		})
		if err != nil {
			return nil, err
		}
		owned := len(owners) == 0 || slices.Contains(owners, "amazon") || slices.Contains(owners, imageOwner)
		listed := len(ids) == 0 || slices.Contains(ids, ami.id)
		if ok && owned && listed && (!deprecated || r.form.bool("IncludeDeprecated") || len(ids) > 0) {
			found = append(found, ami.item())
		}
	}
	items, token, err := page(r.form, found, 1, 1000, 1000)
	return describeImagesReply{Images: items, NextToken: token}, err
}

func (i image) item() imageItem {
	return imageItem{
		ID: i.id, Name: i.name, Architecture: i.arch, CreationDate: timestamp(i.created), DeprecationTime: timestamp(i.created.Add(imageLife)),
		State: "available", OwnerID: imageOwner, OwnerAlias: "amazon", Public: true, Type: "machine", Virtualization: "hvm",
		RootDeviceName: i.rootDevice, RootDeviceType: "ebs", ENA: true,
		Mappings: []imageDisk{{DeviceName: i.rootDevice, SnapshotID: "snap-" + strings.TrimPrefix(i.id, "ami-"), Size: 20, Type: "gp3", Delete: true}},
	}
}

// getParameter is SSM GetParameter.
func getParameter(s *Server, r *request) (any, error) {
	name := r.params["Name"]
	found, ok := s.parameters[name]
	if !ok {
		return nil, errorf("ParameterNotFound", "Parameter %s not found.", name)
	}
	return map[string]any{"Parameter": map[string]any{
		"Name": found.name, "Type": "String", "Value": found.value, "Version": found.version, "DataType": "text",
		"ARN": "arn:aws:ssm:" + s.opts.Region + "::parameter" + found.name,
	}}, nil
}
