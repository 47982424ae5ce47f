// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
)

// setStatus writes what was found into the object's status; the conditions are set already.
func (c *class) setStatus(groups []awsv1.SecurityGroup) {
	status := &c.object.Status
	status.Subnets, status.AMIs, status.SecurityGroups, status.CapacityReservations = nil, nil, groups, nil
	for _, s := range c.subnets {
		status.Subnets = append(status.Subnets, awsv1.Subnet{ID: s.id, Zone: s.zone, ZoneID: s.zoneID})
	}
	for _, i := range c.images {
		status.AMIs = append(status.AMIs, i.AMI)
	}
	status.InstanceProfile = c.profile
	c.groups = nil
	for _, group := range groups {
		c.groups = append(c.groups, group.ID)
	}
}

func (c *class) securityGroups() []awsv1.SecurityGroup {
	if c.object == nil {
		return nil
	}
	return c.object.Status.SecurityGroups
}

func (p *Provider) shapeOf(spec *awsv1.EC2NodeClassSpec, of string) machineShape {
	shape := machineShape{
		memoryOverhead: p.memoryOverhead, reservedENIs: int64(p.opts.ReservedENIs), disk: rootDisk(spec, of),
		reservesByMaxPods: families[of].reservesByMaxPods,
		raid0:             spec.InstanceStorePolicy != nil && *spec.InstanceStorePolicy == awsv1.InstanceStorePolicyRAID0,
	}
	if spec.Kubelet != nil {
		shape.kubelet = *spec.Kubelet
	}
	return shape
}

// rootDisk is the size of the disk that holds pods' data, in bytes: the one marked as root, else for a custom image
// the last one, else the one with the image's device name.
func rootDisk(spec *awsv1.EC2NodeClassSpec, of string) int64 {
	size := int64(defaultRootDisk)
	sized := func(mapping *awsv1.BlockDeviceMapping) bool {
		if mapping.EBS == nil || mapping.EBS.VolumeSize == nil {
			return false
		}
		size = mapping.EBS.VolumeSize.Value()
		return true
	}
	for _, mapping := range spec.BlockDeviceMappings {
		if mapping.RootVolume && sized(mapping) {
			return size
		}
	}
	for _, mapping := range slices.Backward(spec.BlockDeviceMappings) {
		if of == awsv1.AMIFamilyCustom || (mapping.DeviceName != nil && *mapping.DeviceName == families[of].dataDevice) {
			sized(mapping)
			break
		}
	}
	return size
}

func missingSubnets(spec *awsv1.EC2NodeClassSpec) string {
	var terms []string
	for _, term := range spec.SubnetSelectorTerms {
		terms = append(terms, termText(term.ID, "", term.Tags))
	}
	return "no subnet matches subnetSelectorTerms " + strings.Join(terms, " or ")
}

func missingGroups(spec *awsv1.EC2NodeClassSpec) string {
	var terms []string
	for _, term := range spec.SecurityGroupSelectorTerms {
		terms = append(terms, termText(term.ID, term.Name, term.Tags))
	}
	return "no security group matches securityGroupSelectorTerms " + strings.Join(terms, " or ")
}

func missingImages(spec *awsv1.EC2NodeClassSpec, cluster *clusterFacts) string {
	var terms []string
	for _, term := range spec.AMISelectorTerms {
		switch {
		case term.Alias != "" && cluster != nil:
			terms = append(terms, fmt.Sprintf("alias %s for Kubernetes %s", term.Alias, cluster.version))
		case term.SSMParameter != "":
			terms = append(terms, "ssmParameter "+term.SSMParameter)
		default:
			terms = append(terms, termText(term.ID, term.Name, term.Tags))
		}
	}
	return "no image matches amiSelectorTerms " + strings.Join(terms, " or ")
}

// fitsNothing says what images want of a machine, when no type has it.
func fitsNothing(images []image) string {
	var wants []string
	for _, i := range images {
		wants = append(wants, i.ID+" ("+strings.TrimSuffix(requirementsKey(i.Requirements), ";")+")")
	}
	return "no instance type of the region fits the requirements of " + strings.Join(wants, ", ")
}

func termText(id, name string, tags map[string]string) string {
	switch {
	case id != "":
		return "id " + id
	case name != "":
		return "name " + name
	}
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		pairs = append(pairs, key+"="+tags[key])
	}
	return "tags " + strings.Join(pairs, ",")
}
