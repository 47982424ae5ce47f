// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"net/netip"
	"slices"
	"strconv"
	"time"
)

const addressesPerPrefix = 16

// freeAt is how many addresses a subnet had at some time.
type freeAt struct {
	time time.Time
	free int
}

// free is how many addresses the subnet can still give; the caller holds the lock.
func (s *Server) free(sn *subnet) int {
	if most, limited := s.settings.FreeAddresses[sn.id]; limited {
		return max(0, min(most, sn.free()))
	}
	return sn.free()
}

// describedFree is what DescribeSubnets tells: the number of AddressLag ago.
func (s *Server) describedFree(sn *subnet) int {
	before := time.Now().Add(-s.settings.AddressLag.Duration)
	for _, was := range slices.Backward(sn.history) {
		if !was.time.After(before) {
			return was.free
		}
	}
	if len(sn.history) > 0 && s.settings.AddressLag.Duration > 0 {
		return sn.size()
	}
	return s.free(sn)
}

// takeAddresses takes the addresses of a machine: its own first. It takes none if there are too few.
func (s *Server) takeAddresses(sn *subnet, n int) []netip.Addr {
	if s.free(sn) < n {
		return nil
	}
	var taken []netip.Addr
	for range n {
		addr, ok := sn.take()
		if !ok {
			break
		}
		taken = append(taken, addr)
	}
	if most, limited := s.settings.FreeAddresses[sn.id]; limited {
		s.settings.FreeAddresses[sn.id] = most - len(taken)
	}
	sn.history = append(sn.history, freeAt{time: time.Now(), free: s.free(sn)})
	return taken
}

// releaseAddresses gives a machine's addresses back.
func (s *Server) releaseAddresses(in *instance) {
	delete(in.subnet.used, in.addr)
	for _, addr := range in.furtherAddrs {
		delete(in.subnet.used, addr)
	}
	if most, limited := s.settings.FreeAddresses[in.subnet.id]; limited {
		s.settings.FreeAddresses[in.subnet.id] = most + 1 + len(in.furtherAddrs)
	}
	in.subnet.history = append(in.subnet.history, freeAt{time: time.Now(), free: s.free(in.subnet)})
}

// addressesOf is how many addresses a machine of the template takes at launch: one per interface, and the prefixes.
func (s *Server) addressesOf(template *launchTemplate) int {
	n := 0
	for _, specification := range template.data.each("NetworkInterface") {
		if specification["InterfaceType"] != "efa-only" {
			n++
		}
		if prefixes, err := strconv.Atoi(specification["Ipv4PrefixCount"]); err == nil {
			n += prefixes * addressesPerPrefix
		}
	}
	return max(1, n) + s.settings.AddressesPerMachine
}
