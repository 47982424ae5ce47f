// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"maps"
	"slices"
	"strings"
	"time"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// unavailableFor is how long EC2's refusal of a pool is believed.
const unavailableFor = 3 * time.Minute

// quotaKey is what an EC2 service quota counts.
type quotaKey struct{ group, capacityType string }

// quotaUsed says that a machine of so many vCPUs did not fit into a quota any more.
type quotaUsed struct {
	vcpus int64
	until time.Time
}

// unavailable remembers what EC2 refused. Its owner guards it. Entries end by themselves; sequence grows whenever
// what it answers may have changed.
type unavailable struct {
	sequence      int
	pools         map[pool]time.Time
	quotas        map[quotaKey]quotaUsed
	capacityTypes map[string]time.Time
	subnets       map[string]time.Time // without free addresses
	nextExpiry    time.Time            // zero: nothing is remembered
}

func newUnavailable() *unavailable {
	return &unavailable{
		pools: map[pool]time.Time{}, quotas: map[quotaKey]quotaUsed{}, capacityTypes: map[string]time.Time{}, subnets: map[string]time.Time{},
	}
}

func (u *unavailable) remember(now time.Time) time.Time {
	until := now.Add(unavailableFor)
	if u.nextExpiry.IsZero() || until.Before(u.nextExpiry) {
		u.nextExpiry = until
	}
	u.sequence++
	return until
}

func (u *unavailable) markPool(now time.Time, p pool)           { u.pools[p] = u.remember(now) }
func (u *unavailable) markCapacityType(now time.Time, t string) { u.capacityTypes[t] = u.remember(now) }
func (u *unavailable) markSubnet(now time.Time, id string)      { u.subnets[id] = u.remember(now) }

// markQuota says that a machine with so many vCPUs was refused: smaller ones may still fit.
func (u *unavailable) markQuota(now time.Time, key quotaKey, vcpus int64) {
	until := u.remember(now)
	if before, ok := u.quotas[key]; ok {
		vcpus = min(vcpus, before.vcpus)
	}
	u.quotas[key] = quotaUsed{vcpus: vcpus, until: until}
}

// expire drops what has ended.
func (u *unavailable) expire(now time.Time) {
	if u.nextExpiry.IsZero() || now.Before(u.nextExpiry) {
		return
	}
	next := time.Time{}
	ended := func(until time.Time) bool {
		if !now.Before(until) {
			return true
		}
		if next.IsZero() || until.Before(next) {
			next = until
		}
		return false
	}
	maps.DeleteFunc(u.pools, func(_ pool, until time.Time) bool { return ended(until) })
	maps.DeleteFunc(u.quotas, func(_ quotaKey, used quotaUsed) bool { return ended(used.until) })
	maps.DeleteFunc(u.capacityTypes, func(_ string, until time.Time) bool { return ended(until) })
	maps.DeleteFunc(u.subnets, func(_ string, until time.Time) bool { return ended(until) })
	u.nextExpiry = next
	u.sequence++
}

// empty says that nothing is remembered.
func (u *unavailable) empty() bool { return u.nextExpiry.IsZero() }

// blocks says whether the offering is out, given the class's subnets in the zone.
func (u *unavailable) blocks(h *hardware, zone, capacityType string, subnets []string) bool {
	if _, out := u.capacityTypes[capacityType]; out {
		return true
	}
	if _, out := u.pools[pool{h.name, zone, capacityType}]; out {
		return true
	}
	if used, ok := u.quotas[quotaKey{h.quota, capacityType}]; ok && h.vcpus >= used.vcpus {
		return true
	}
	full := func(id string) bool { _, out := u.subnets[id]; return out }
	return len(subnets) > 0 && len(u.subnets) > 0 && !slices.ContainsFunc(subnets, func(id string) bool { return !full(id) })
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
