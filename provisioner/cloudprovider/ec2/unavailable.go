// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// mark is one thing that is believed to be out. Fields that are empty mean any; a mark with none means everything.
type mark struct {
	instanceType, zone, capacityType string
	subnet                           string
	quota                            string
	reservation                      string
}

// belief is why and until when.
type belief struct {
	until  time.Time
	reason string
	// vcpus of the smallest machine that a quota refused: smaller ones may still fit.
	vcpus int64
}

// unavailable remembers what EC2 refused: the one memory that the planner (InstanceTypes) and the launcher (fleetFor)
// share. Its owner guards it. Entries end by themselves; sequence grows whenever what it answers may have changed.
type unavailable struct {
	sequence   int
	marks      map[mark]belief
	subnets    int       // marks of subnets
	nextExpiry time.Time // zero: nothing is remembered
}

func newUnavailable() *unavailable { return &unavailable{marks: map[mark]belief{}} }

// remember notes what a mood says of an offering: nothing, if it rules nothing out.
func (u *unavailable) remember(now time.Time, m mood, h *hardware, zone, capacityType, subnetID, reservationID, code string) {
	b := belief{until: now.Add(m.ttl), reason: code}
	var key mark
	needed := []string{"any"} // without it the reply does not say what it is about
	switch m.scope {
	case scopeNone:
		return
	case scopePool:
		key = mark{instanceType: h.name, zone: zone, capacityType: capacityType, reservation: reservationID}
		needed = []string{h.name, zone}
	case scopeTypeInZone:
		key = mark{instanceType: h.name, zone: zone}
		needed = []string{h.name, zone}
	case scopeZone:
		key = mark{zone: zone}
		needed = []string{zone}
	case scopeSubnet:
		key = mark{subnet: subnetID}
		needed = []string{subnetID}
	case scopeCapacityType:
		key = mark{capacityType: capacityType}
		needed = []string{capacityType}
	case scopeQuota:
		key, b.vcpus = mark{quota: h.quota, capacityType: capacityType}, h.vcpus
		needed = []string{h.quota}
	case scopeReservation:
		key = mark{reservation: reservationID}
		needed = []string{reservationID}
	case scopeAccount:
		key = mark{}
	}
	if slices.Contains(needed, "") {
		return
	}
	if before, ok := u.marks[key]; ok && key.quota != "" {
		b.vcpus = min(b.vcpus, before.vcpus)
	}
	u.note(key, b)
}

func (u *unavailable) note(key mark, b belief) {
	if _, had := u.marks[key]; !had && key.subnet != "" {
		u.subnets++
	}
	u.marks[key] = b
	if u.nextExpiry.IsZero() || b.until.Before(u.nextExpiry) {
		u.nextExpiry = b.until
	}
	u.sequence++
}

// expire drops what has ended.
func (u *unavailable) expire(now time.Time) {
	if u.nextExpiry.IsZero() || now.Before(u.nextExpiry) {
		return
	}
	u.nextExpiry, u.subnets = time.Time{}, 0
	maps.DeleteFunc(u.marks, func(key mark, b belief) bool {
		if !now.Before(b.until) {
			return true
		}
		if u.nextExpiry.IsZero() || b.until.Before(u.nextExpiry) {
			u.nextExpiry = b.until
		}
		if key.subnet != "" {
			u.subnets++
		}
		return false
	})
	u.sequence++
}

// empty says that nothing is remembered.
func (u *unavailable) empty() bool { return u.nextExpiry.IsZero() }

// blocks says why the offering is out, given the class's subnets in the zone; "" if it is not known to be.
func (u *unavailable) blocks(h *hardware, zone, capacityType, reservationID string, subnets []string) string {
	if u.empty() {
		return ""
	}
	for _, key := range []mark{
		{},
		{zone: zone},
		{capacityType: capacityType},
		{instanceType: h.name, zone: zone},
		{instanceType: h.name, zone: zone, capacityType: capacityType, reservation: reservationID},
	} {
		if b, out := u.marks[key]; out {
			return b.reason
		}
	}
	if reservationID != "" {
		if b, out := u.marks[mark{reservation: reservationID}]; out {
			return b.reason
		}
	}
	if b, out := u.marks[mark{quota: h.quota, capacityType: capacityType}]; out && h.vcpus >= b.vcpus && h.quota != "" {
		return b.reason
	}
	if u.subnets == 0 || len(subnets) == 0 {
		return ""
	}
	reason := ""
	full := func(id string) bool {
		b, out := u.marks[mark{subnet: id}]
		reason = b.reason
		return out
	}
	if slices.ContainsFunc(subnets, func(id string) bool { return !full(id) }) {
		return ""
	}
	return fmt.Sprintf("%s: %s", reason, strings.Join(subnets, ", "))
}

// quotaGroup names the vCPU quota that a type counts against. AWS counts most families together.
func quotaGroup(category, family string) string {
	switch {
	case strings.HasPrefix(family, "dl"), strings.HasPrefix(family, "trn"), strings.HasPrefix(family, "hpc"), strings.HasPrefix(family, "inf"):
		return category
	case strings.HasPrefix(category, "g"), strings.HasPrefix(category, "vt"):
		return "g-vt"
	case len(category) > 0 && strings.Contains("acdhimrtz", category[:1]):
		return "standard"
	}
	return category
}

const (
	onDemand = string(ec2types.DefaultTargetCapacityTypeOnDemand)
	spot     = string(ec2types.DefaultTargetCapacityTypeSpot)
)
