// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"context"
	"maps"
	"net/netip"
	"time"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/fakeaws/catalogue"
	"github.com/jit-scheduler/jit-scheduler/kind-e2e/fakeaws/machine"
	"github.com/jit-scheduler/jit-scheduler/kind-e2e/fakeaws/userdata"
)

type instanceState string

const (
	pending      instanceState = "pending"
	running      instanceState = "running"
	shuttingDown instanceState = "shutting-down"
	terminated   instanceState = "terminated"
)

var stateCodes = map[instanceState]int{pending: 0, running: 16, shuttingDown: 32, terminated: 48}

// Instance is a machine that was launched, as tests and the judge see it.
type Instance struct {
	ID              string            `json:"id"`
	InstanceType    string            `json:"instanceType"`
	Zone            string            `json:"zone"`
	SubnetID        string            `json:"subnetId"`
	CapacityType    string            `json:"capacityType"`
	State           string            `json:"state"`
	PriceUSDPerHour float64           `json:"priceUSDPerHour"`
	LaunchedAt      time.Time         `json:"launchedAt"`
	RunningAt       *time.Time        `json:"runningAt"`
	TerminatedAt    *time.Time        `json:"terminatedAt"`
	Tags            map[string]string `json:"tags"`
	ClientToken     string            `json:"clientToken"`
	FleetID         string            `json:"fleetId"`
	LaunchTemplate  string            `json:"launchTemplate"` // its name
	PrivateDNSName  string            `json:"privateDnsName"`
	NodeName        string            `json:"nodeName"` // empty until the machine has joined
	VCPUs           int               `json:"vcpus"`
	Allocatable     map[string]string `json:"allocatable"`
	BootError       string            `json:"bootError,omitempty"` // why the machine will never join
}

type instance struct {
	id           string
	it           catalogue.Type
	subnet       *subnet
	addr         netip.Addr
	furtherAddrs []netip.Addr // of prefixes, further interfaces and pods
	capacityType string
	state        instanceState
	price        float64
	launchedAt   time.Time
	runningAt    *time.Time
	terminatedAt *time.Time
	forgotten    bool // EC2 does not list it any more
	tags         map[string]string
	fleet        *fleet
	template     *launchTemplate
	image        *image
	requestID    string // of the spot request
	reservation  *CapacityReservation
	interfaceID  string
	group        *PlacementGroup
	partition    int
	health       Health

	config   userdata.Config
	bootErr  error
	machine  *machine.Machine
	nodeName string
	stop     context.CancelFunc // powers the machine off
	reason   *stateReason       // why it was
}

// launch starts one instance; the caller holds the lock and has taken the address.
func (s *Server) launch(f *fleet, p *pool, addrs []netip.Addr, reservation *CapacityReservation) *instance {
	in := &instance{
		id: s.hexID("i-"), it: p.it, subnet: p.subnet, addr: addrs[0], furtherAddrs: addrs[1:], capacityType: f.capacityType, state: pending, price: p.it.OnDemandUSD,
		launchedAt: time.Now(), fleet: f, template: p.template, image: p.image, reservation: reservation, interfaceID: s.hexID("eni-"),
		tags: map[string]string{"aws:ec2:fleet-id": f.id, "aws:ec2launchtemplate:id": p.template.ID, "aws:ec2launchtemplate:version": "1"},
	}
	if f.capacityType == spot {
		in.price, in.requestID = p.it.SpotUSD(p.subnet.zone), s.hexID("sir-")[:12]
	}
	maps.Copy(in.tags, p.template.data.tagsFor("instance"))
	maps.Copy(in.tags, f.tags)
	s.install(in, p.rootDiskGiB())
	s.instances[in.id] = in
	s.launched = append(s.launched, in)
	s.enter(in, pending)
	ctx, stop := context.WithCancel(s.ctx)
	in.stop = stop
	s.spawnLocked(func() { s.live(ctx, in) })
	return in
}

// install prepares what will boot: the configuration in the user data and the kubelet's arithmetic.
func (s *Server) install(in *instance, rootDiskGiB int64) {
	deviation, err := s.settings.deviation()
	if err != nil {
		in.bootErr = err
		return
	}
	if in.config, in.bootErr = userdata.Parse(in.template.userData); in.bootErr != nil {
		return
	}
	if in.bootErr = machine.CheckLabels(in.config.Labels); in.bootErr != nil {
		return
	}
	hardware := machine.Hardware{Type: in.it, RootDiskGiB: rootDiskGiB, Deviation: deviation, DevicePlugins: s.settings.DevicePlugins}
	capacity, allocatable, err := machine.Resources(hardware, in.config)
	if err != nil {
		in.bootErr = err
		return
	}
	in.machine = &machine.Machine{
		InstanceID: in.id, InstanceType: in.it.Name, Arch: in.it.Arch, Region: s.opts.Region, Zone: in.subnet.zone, ZoneID: in.subnet.zoneID,
		PrivateDNSName: s.privateDNSName(in.addr), PrivateIP: in.addr.String(), KubeletVersion: "v" + in.image.kubernetes + ".0", OSImage: in.image.osImage,
		Labels: in.config.Labels, Taints: in.config.Taints, Capacity: capacity, Allocatable: allocatable,
	}
}

// terminate powers an instance off; the caller holds the lock. A second time changes nothing.
func (s *Server) terminate(in *instance, reason stateReason) {
	if in.state == shuttingDown || in.state == terminated {
		return
	}
	in.reason = &reason
	s.enter(in, shuttingDown)
	in.stop()
	s.spawnLocked(func() { s.die(in) })
}

func (s *Server) die(in *instance) {
	settings := s.Settings()
	if !sleep(s.ctx, settings.TerminateDelay.Duration) {
		return
	}
	s.mu.Lock()
	now := time.Now()
	in.terminatedAt = &now
	s.enter(in, terminated)
	s.releaseAddresses(in)
	if in.reservation != nil {
		in.reservation.Available++
	}
	s.mu.Unlock()
	s.cleanNode(in, settings)
	if sleep(s.ctx, settings.TerminatedFor.Duration-time.Since(now)) {
		s.mu.Lock()
		defer s.mu.Unlock()
		in.forgotten = true
		delete(s.instances, in.id)
	}
}

// Instances returns every instance ever launched, in order of launch.
func (s *Server) Instances() []Instance {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []Instance{}
	for _, in := range s.launched {
		list = append(list, s.publish(in))
	}
	return list
}

func (s *Server) publish(in *instance) Instance {
	out := Instance{
		ID: in.id, InstanceType: in.it.Name, Zone: in.subnet.zone, SubnetID: in.subnet.id, CapacityType: in.capacityType, State: string(in.state),
		PriceUSDPerHour: in.price, LaunchedAt: in.launchedAt, RunningAt: in.runningAt, TerminatedAt: in.terminatedAt, Tags: maps.Clone(in.tags),
		ClientToken: in.fleet.token, FleetID: in.fleet.id, LaunchTemplate: in.template.Name, PrivateDNSName: s.privateDNSName(in.addr),
		NodeName: in.nodeName, VCPUs: in.it.VCPU, Allocatable: map[string]string{},
	}
	if in.bootErr != nil {
		out.BootError = in.bootErr.Error()
	}
	if in.machine != nil {
		for name, quantity := range in.machine.Allocatable {
			out.Allocatable[string(name)] = quantityText(quantity, name)
		}
	}
	return out
}

// visible says whether Describe and CreateTags know the instance yet.
func (s *Server) visible(in *instance) bool {
	return in != nil && !in.forgotten && time.Since(in.launchedAt) >= s.settings.DescribeLag.Duration
}

// Interrupt stops an instance from outside, as a reclaimed spot instance or a failed host does.
// It reports false for an unknown id.
func (s *Server) Interrupt(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	in := s.instances[id]
	if in == nil {
		return false
	}
	s.terminate(in, stateReason{Code: "Server.SpotInstanceTermination", Message: "Server.SpotInstanceTermination: Spot instance termination"})
	return true
}
