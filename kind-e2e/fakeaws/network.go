// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// SubnetSpec is one subnet of the default VPC. EC2 keeps five of its addresses.
type SubnetSpec struct {
	Zone string
	CIDR string
}

const reservedAddresses = 5 // the first four and the last

type subnet struct {
	id, zone, zoneID string
	prefix           netip.Prefix
	tags             map[string]string
	used             map[netip.Addr]bool
	next             netip.Addr // where the search for a free address starts
	history          []freeAt   // oldest first
}

type securityGroup struct {
	id, name, description string
	tags                  map[string]string
}

func defaultSubnets(region string) []SubnetSpec {
	return []SubnetSpec{
		{Zone: region + "a", CIDR: "10.0.0.0/20"},
		{Zone: region + "b", CIDR: "10.0.16.0/20"},
		{Zone: region + "c", CIDR: "10.0.32.0/20"},
	}
}

// zoneID maps the zones a, b, c… of the account to zone ids.
func zoneID(zone string) string { return "use1-az" + strconv.Itoa(int(zone[len(zone)-1]-'a')+1) }

func (s *Server) discoveryTags(name string) map[string]string {
	return map[string]string{"karpenter.sh/discovery": s.opts.ClusterName, "Name": name}
}

// buildNetwork ignores subnets whose CIDR does not parse: New cannot fail, and a launch into them would.
func (s *Server) buildNetwork() {
	s.vpc = s.hexID("vpc-")
	for i, spec := range s.opts.Subnets {
		prefix, err := netip.ParsePrefix(spec.CIDR)
		if err != nil || spec.Zone == "" {
			s.log.Error("ignoring a subnet", "zone", spec.Zone, "cidr", spec.CIDR)
			continue
		}
		sn := &subnet{
			id: s.hexID("subnet-"), zone: spec.Zone, zoneID: zoneID(spec.Zone), prefix: prefix.Masked(),
			tags: s.discoveryTags(fmt.Sprintf("%s-private-%d", s.opts.ClusterName, i+1)), used: map[netip.Addr]bool{},
		}
		sn.next = sn.first()
		s.subnets = append(s.subnets, sn)
	}
	s.groups = []securityGroup{
		{id: s.hexID("sg-"), name: "eks-cluster-sg-" + s.opts.ClusterName, description: "nodes and control plane", tags: s.discoveryTags("nodes")},
		{id: s.hexID("sg-"), name: "default", description: "default VPC security group", tags: map[string]string{}},
	}
}

func (n *subnet) first() netip.Addr {
	addr := n.prefix.Addr()
	for range reservedAddresses - 1 {
		addr = addr.Next()
	}
	return addr
}

func (n *subnet) size() int { return 1<<(n.prefix.Addr().BitLen()-n.prefix.Bits()) - reservedAddresses }

func (n *subnet) free() int { return max(0, n.size()-len(n.used)) }

// take returns a free address; it goes round, so that addresses rest before they are used again.
func (n *subnet) take() (netip.Addr, bool) {
	for range n.size() {
		addr := n.next
		n.next = addr.Next()
		if !n.prefix.Contains(n.next.Next()) { // the last address is not handed out
			n.next = n.first()
		}
		if !n.used[addr] {
			n.used[addr] = true
			return addr, true
		}
	}
	return netip.Addr{}, false
}

func (s *Server) subnetByID(id string) *subnet {
	for _, sn := range s.subnets { // fixed after New
		if sn.id == id {
			return sn
		}
	}
	return nil
}

func (s *Server) privateDNSName(addr netip.Addr) string {
	host := "ip-" + strings.ReplaceAll(addr.String(), ".", "-")
	if s.opts.Region == "us-east-1" {
		return host + ".ec2.internal"
	}
	return host + "." + s.opts.Region + ".compute.internal"
}

// Zones returns the zones that have a subnet, in the order of the options.
func (s *Server) Zones() []string {
	var zones []string
	seen := map[string]bool{}
	for _, sn := range s.subnets {
		if !seen[sn.zone] {
			seen[sn.zone] = true
			zones = append(zones, sn.zone)
		}
	}
	return zones
}

// Subnet is a subnet of the account.
type Subnet struct {
	ID   string `json:"id"`
	Zone string `json:"zone"`
	Free int    `json:"free"` // addresses
}

// Subnets returns all subnets, in the order of the options.
func (s *Server) Subnets() []Subnet {
	s.mu.Lock()
	defer s.mu.Unlock()
	return converted(s.subnets, func(sn *subnet) Subnet { return Subnet{ID: sn.id, Zone: sn.zone, Free: s.free(sn)} })
}

type subnetItem struct {
	SubnetID         string    `xml:"subnetId"`
	SubnetARN        string    `xml:"subnetArn"`
	State            string    `xml:"state"`
	VPCID            string    `xml:"vpcId"`
	CIDRBlock        string    `xml:"cidrBlock"`
	Free             int       `xml:"availableIpAddressCount"`
	AvailabilityZone string    `xml:"availabilityZone"`
	ZoneID           string    `xml:"availabilityZoneId"`
	DefaultForAZ     bool      `xml:"defaultForAz"`
	MapPublicIP      bool      `xml:"mapPublicIpOnLaunch"`
	OwnerID          string    `xml:"ownerId"`
	Tags             []tagItem `xml:"tagSet>item"`
}

type describeSubnetsReply struct {
	Subnets   []subnetItem `xml:"subnetSet>item"`
	NextToken string       `xml:"nextToken,omitempty"`
}

func describeSubnets(s *Server, r *request) (any, error) {
	ids := r.form.list("SubnetId")
	for _, id := range ids {
		if s.subnetByID(id) == nil {
			return nil, errorf("InvalidSubnetID.NotFound", "The subnet ID '%s' does not exist", id)
		}
	}
	if r.form.bool("DryRun") {
		return nil, errDryRun()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	chosen, err := choose(r.form, ids, s.subnets, func(sn *subnet) facts {
		return facts{names: []string{sn.id}, tags: sn.tags, attrs: attributes{
			"subnet-id": {sn.id}, "vpc-id": {s.vpc}, "state": {"available"}, "availability-zone": {sn.zone}, "availability-zone-id": {sn.zoneID},
			"cidr-block": {sn.prefix.String()}, "owner-id": {s.opts.AccountID}, "default-for-az": {"false"},
		}}
	})
	if err != nil {
		return nil, err
	}
	items, token, err := page(r.form, converted(chosen, s.subnetItem), 5, 1000, 1000)
	return describeSubnetsReply{Subnets: items, NextToken: token}, err
}

func (s *Server) subnetItem(sn *subnet) subnetItem {
	return subnetItem{
		SubnetID: sn.id, SubnetARN: "arn:aws:ec2:" + s.opts.Region + ":" + s.opts.AccountID + ":subnet/" + sn.id, State: "available",
		VPCID: s.vpc, CIDRBlock: sn.prefix.String(), Free: s.describedFree(sn), AvailabilityZone: sn.zone, ZoneID: sn.zoneID,
		OwnerID: s.opts.AccountID, Tags: tagItems(sn.tags),
	}
}

type securityGroupItem struct {
	ID          string    `xml:"groupId"`
	Name        string    `xml:"groupName"`
	Description string    `xml:"groupDescription"`
	VPCID       string    `xml:"vpcId"`
	OwnerID     string    `xml:"ownerId"`
	Tags        []tagItem `xml:"tagSet>item"`
}

type describeSecurityGroupsReply struct {
	Groups    []securityGroupItem `xml:"securityGroupInfo>item"`
	NextToken string              `xml:"nextToken,omitempty"`
}

func describeSecurityGroups(s *Server, r *request) (any, error) {
	listed := slices.Concat(r.form.list("GroupId"), r.form.list("GroupName"))
	for _, wanted := range listed {
		if !slices.ContainsFunc(s.groups, func(g securityGroup) bool { return g.id == wanted || g.name == wanted }) {
			return nil, errorf("InvalidGroup.NotFound", "The security group '%s' does not exist", wanted)
		}
	}
	if r.form.bool("DryRun") {
		return nil, errDryRun()
	}
	chosen, err := choose(r.form, listed, s.groups, func(g securityGroup) facts {
		return facts{names: []string{g.id, g.name}, tags: g.tags, attrs: attributes{
			"group-id": {g.id}, "group-name": {g.name}, "vpc-id": {s.vpc}, "description": {g.description}, "owner-id": {s.opts.AccountID},
		}}
	})
	if err != nil {
		return nil, err
	}
	items, token, err := page(r.form, converted(chosen, s.securityGroupItem), 5, 1000, 1000)
	return describeSecurityGroupsReply{Groups: items, NextToken: token}, err
}

func (s *Server) securityGroupItem(g securityGroup) securityGroupItem {
	return securityGroupItem{ID: g.id, Name: g.name, Description: g.description, VPCID: s.vpc, OwnerID: s.opts.AccountID, Tags: tagItems(g.tags)}
}

func (s *Server) groupByID(id string) *securityGroup {
	for i := range s.groups {
		if s.groups[i].id == id {
			return &s.groups[i]
		}
	}
	return nil
}
