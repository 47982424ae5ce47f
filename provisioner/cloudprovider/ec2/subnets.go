// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
)

const (
	addressesPerPrefix = 16
	// podsComeFor is how long after its launch a machine goes on taking addresses for pods: until then EC2's count of
	// free ones lacks them.
	podsComeFor = 2 * time.Minute
)

// addressBook counts the addresses that launches take and EC2's last count of free ones lacks. Classes share it, as they
// share subnets. Its owner guards it.
type addressBook struct {
	debits map[string]map[string]debit // by subnet and token
}

// debit is what one launch takes of one subnet: its machines at once, and for their pods later.
type debit struct {
	machines, pods int64
	at             time.Time
}

func newAddressBook() *addressBook { return &addressBook{debits: map[string]map[string]debit{}} }

func (b *addressBook) put(subnetID, token string, d debit) {
	if d.machines <= 0 {
		delete(b.debits[subnetID], token)
		return
	}
	if b.debits[subnetID] == nil {
		b.debits[subnetID] = map[string]debit{}
	}
	b.debits[subnetID][token] = d
}

// room is what is left of a subnet.
type room struct {
	// machines could be launched there, if their pods took nothing; free counts what pods of launches on their way take.
	machines, free int64
}

// roomOf is what EC2 counted, less what it has not seen yet.
func (b *addressBook) roomOf(s subnet, now time.Time) room {
	left := room{s.free, s.free}
	for token, d := range b.debits[s.id] {
		unseen := !d.at.Before(s.readAt)
		if unseen {
			left.machines -= d.machines
			left.free -= d.machines
		}
		if unseen || now.Sub(d.at) < podsComeFor {
			left.free -= d.pods
		} else {
			delete(b.debits[s.id], token)
		}
	}
	return left
}

// roomsOf is what is left of each subnet of the class, by id. What EC2 has refused lately has nothing left. The caller
// holds Provider.mu.
func (p *Provider) roomsOf(c *class) map[string]room {
	now, rooms := time.Now(), map[string]room{}
	for _, s := range c.subnets {
		rooms[s.id] = p.addresses.roomOf(s, now)
		if _, refused := p.unavailable.marks[mark{subnet: s.id}]; refused {
			rooms[s.id] = room{}
		}
	}
	return rooms
}

// podAddresses is how many addresses of its subnet a machine's pods will take: as many as there may be pods with the VPC
// CNI in its default mode; those of its prefixes where it gets prefixes. Pods with IPv6 addresses take none, nor do more
// pods than the interfaces have addresses for: they come from another plugin, or from prefixes whose number is not known.
func (c *class) podAddresses(h *hardware) int64 {
	prefixes := int64(aws.ToInt32(c.object.Spec.IPPrefixCount))
	switch pods := h.pods(&c.shape); {
	case c.cluster != nil && c.cluster.ipv6():
		return 0
	case prefixes > 0:
		return prefixes * addressesPerPrefix
	case pods > h.eniPods(c.shape.reservedENIs):
		return 0
	default:
		return max(0, pods-1) // the reference's number counts the machine as one of them
	}
}

// ipv6 says whether pods have IPv6 addresses.
func (c *clusterFacts) ipv6() bool {
	prefix, err := netip.ParsePrefix(c.serviceCIDR)
	return err == nil && prefix.Addr().Is6()
}

// choosePlaces chooses for every zone of the options the subnet with most free addresses. Zones without any are left out, and,
// if there are others, those that the machines' pods would exhaust.
func (f *fleet) choosePlaces(options []cloudprovider.LaunchOption, rooms map[string]room, choosy bool) {
	least := int64(-1)
	zones := map[string]bool{}
	for i := range options {
		if how, ok := f.class.launchable[options[i].InstanceType.Name]; ok && options[i].Offering.CapacityType == f.capacityType {
			zones[options[i].Offering.Zone] = true
			if pods := f.class.podAddresses(how.hardware); least < 0 || pods < least {
				least = pods
			}
		}
	}
	f.pods = max(0, least) * int64(f.count)
	enough := false
	for zone := range zones {
		if best, ok := f.class.roomiest(zone, rooms); ok {
			f.subnets[zone] = best
			enough = enough || rooms[best.id].free >= f.pods+int64(f.count)
		}
	}
	if enough && choosy {
		maps.DeleteFunc(f.subnets, func(_ string, s subnet) bool { return rooms[s.id].free < f.pods+int64(f.count) })
	}
}

// roomiest is the zone's subnet with most free addresses; false if none has one.
func (c *class) roomiest(zone string, rooms map[string]room) (subnet, bool) {
	var best subnet
	for _, s := range c.subnets {
		if s.zone != zone || rooms[s.id].machines < 1 {
			continue
		}
		if best.id == "" || cmp.Or(cmp.Compare(rooms[s.id].free, rooms[best.id].free), cmp.Compare(best.id, s.id)) > 0 {
			best = s
		}
	}
	return best, best.id != ""
}

// full says why nothing can be launched in a zone: all of the class's subnets there are full, and this is how full they
// are. "" if one is not.
func (c *class) full(zone string, rooms map[string]room) string {
	var parts []string
	for _, s := range c.subnets {
		if s.zone != zone {
			continue
		}
		if rooms[s.id].machines > 0 {
			return ""
		}
		parts = append(parts, fmt.Sprintf("%s (%s) has %d", s.id, s.zone, max(0, rooms[s.id].machines)))
	}
	if len(parts) == 0 {
		return ""
	}
	slices.Sort(parts)
	return "no free addresses: subnet " + strings.Join(parts, ", ")
}

// fullZones are the zones of the class in which nothing can be launched, and why.
func (c *class) fullZones(rooms map[string]room) map[string]string {
	zones := map[string]string{}
	for _, s := range c.subnets {
		if _, done := zones[s.zone]; done {
			continue
		}
		if why := c.full(s.zone, rooms); why != "" {
			zones[s.zone] = why
		}
	}
	return zones
}

// debit counts what the fleet may take of each of its subnets. The caller holds Provider.mu.
func (p *Provider) debit(token string, f *fleet, now time.Time) {
	for _, s := range f.subnets {
		p.addresses.put(s.id, token, debit{int64(f.count), f.pods, now})
	}
}

// settle gives back the addresses that a launch did not take. Of a launch whose outcome is unknown nothing is known.
func (p *Provider) settle(token string, f *fleet, result *cloudprovider.LaunchResult) {
	p.mu.Lock()
	defer p.mu.Unlock()
	taken := map[string]int64{}
	if result != nil {
		for i := range result.Instances {
			taken[result.Instances[i].SubnetID]++
		}
	}
	for _, s := range f.subnets {
		d, ok := p.addresses.debits[s.id][token]
		if !ok {
			continue
		}
		d.pods = d.pods / int64(f.count) * taken[s.id]
		d.machines = taken[s.id]
		p.addresses.put(s.id, token, d)
	}
}

// explainAddresses has failures for want of addresses say which subnets are full and how full they are. Where the zone
// has another subnet the failure says nothing about the offering: the next launch goes there.
func (p *Provider) explainAddresses(f *fleet, failures []cloudprovider.OfferingFailure) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var rooms map[string]room
	for i := range failures {
		of := &failures[i]
		if of.Code != freeAddressesCode {
			continue
		}
		if rooms == nil {
			rooms = p.roomsOf(f.class)
		}
		if why := f.class.full(of.Zone, rooms); why != "" {
			of.Message = why
		} else {
			of.Passing = true
		}
	}
}
