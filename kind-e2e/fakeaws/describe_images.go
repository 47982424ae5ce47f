// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"slices"
	"strings"
	"time"
)

type imageItem struct {
	ID              string      `xml:"imageId"`
	Name            string      `xml:"name"`
	Architecture    string      `xml:"architecture"`
	CreationDate    string      `xml:"creationDate"`
	DeprecationTime string      `xml:"deprecationTime"`
	State           string      `xml:"imageState"`
	OwnerID         string      `xml:"imageOwnerId"`
	OwnerAlias      string      `xml:"imageOwnerAlias,omitempty"`
	Public          bool        `xml:"isPublic"`
	Type            string      `xml:"imageType"`
	Virtualization  string      `xml:"virtualizationType"`
	RootDeviceName  string      `xml:"rootDeviceName"`
	RootDeviceType  string      `xml:"rootDeviceType"`
	ENA             bool        `xml:"enaSupport"`
	Mappings        []imageDisk `xml:"blockDeviceMapping>item"`
	Tags            []tagItem   `xml:"tagSet>item"`
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
	ids, owners := r.form.list("ImageId"), r.form.list("Owner")
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		if s.imageByID(id) == nil {
			return nil, errorf("InvalidAMIID.NotFound", "The image id '[%s]' does not exist", id)
		}
	}
	if r.form.bool("DryRun") {
		return nil, errDryRun()
	}
	now := time.Now()
	listed := slices.DeleteFunc(slices.Clone(s.images), func(i image) bool {
		hidden := i.state == deregistered || (i.state == "disabled" && !r.form.bool("IncludeDisabled"))
		old := !i.deprecated.After(now) && !r.form.bool("IncludeDeprecated") && len(ids) == 0
		return hidden || old || !i.ownedBy(owners, s.opts.AccountID)
	})
	chosen, err := choose(r.form, ids, listed, func(i image) facts {
		return facts{names: []string{i.id}, tags: i.tags, attrs: attributes{
			"image-id": {i.id}, "name": {i.name}, "state": {orDefault(i.state, "available")}, "architecture": {i.arch},
			"owner-id": {i.owner}, "owner-alias": {i.ownerAlias()}, "image-type": {"machine"}, "virtualization-type": {"hvm"},
		}}
	})
	if err != nil {
		return nil, err
	}
	items, token, err := page(r.form, converted(chosen, image.item), 1, 1000, 1000)
	return describeImagesReply{Images: items, NextToken: token}, err
}

// ownedBy says whether the image belongs to one of the owners: account ids, self or amazon.
func (i image) ownedBy(owners []string, account string) bool {
	return len(owners) == 0 || slices.Contains(owners, i.owner) || slices.Contains(owners, i.ownerAlias()) ||
		(slices.Contains(owners, "self") && i.owner == account)
}

func (i image) ownerAlias() string {
	if i.owner == imageOwner {
		return "amazon"
	}
	return ""
}

func (i image) item() imageItem {
	return imageItem{
		ID: i.id, Name: i.name, Architecture: i.arch, CreationDate: timestamp(i.created), DeprecationTime: timestamp(i.deprecated),
		State: orDefault(i.state, "available"), OwnerID: i.owner, OwnerAlias: i.ownerAlias(), Public: i.owner == imageOwner, Tags: tagItems(i.tags), Type: "machine", Virtualization: "hvm",
		RootDeviceName: i.rootDevice, RootDeviceType: "ebs", ENA: true,
		Mappings: []imageDisk{{DeviceName: i.rootDevice, SnapshotID: "snap-" + strings.TrimPrefix(i.id, "ami-"), Size: 20, Type: "gp3", Delete: true}},
	}
}
