// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"testing"
	"time"
)

func TestUnavailable(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	small, large := &hardware{name: "m5.large", vcpus: 2, quota: "standard"}, &hardware{name: "c5.4xlarge", vcpus: 16, quota: "standard"}
	gpu := &hardware{name: "g5.xlarge", vcpus: 4, quota: "g-vt"}
	type question struct {
		of                      *hardware
		zone, kind, reservation string
		want                    bool
	}
	refused := func(code, message string, of *hardware, zone, kind, subnet, reservation string) func(*unavailable) {
		return func(u *unavailable) {
			u.remember(now, moodOf(code, message), of, zone, kind, subnet, reservation, code)
		}
	}
	both := func(all ...func(*unavailable)) func(*unavailable) {
		return func(u *unavailable) {
			for _, f := range all {
				f(u)
			}
		}
	}
	cases := map[string]struct {
		mark func(*unavailable)
		ttl  time.Duration
		ask  []question
	}{
		"pool": {
			refused("InsufficientInstanceCapacity", "", small, "a", spot, "s1", ""), capacityFor,
			[]question{{small, "a", spot, "", true}, {small, "b", spot, "", false}, {small, "a", onDemand, "", false}, {large, "a", spot, "", false}},
		},
		"type in zone": {
			refused("Unsupported", "not supported in your requested Availability Zone", small, "a", spot, "s1", ""), unsupportedFor,
			[]question{{small, "a", onDemand, "", true}, {small, "b", onDemand, "", false}, {large, "a", onDemand, "", false}},
		},
		"zone": {
			refused("InsufficientVolumeCapacity", "", small, "a", spot, "s1", ""), capacityFor,
			[]question{{gpu, "a", onDemand, "", true}, {small, "b", spot, "", false}},
		},
		"quota": {
			refused("VcpuLimitExceeded", "", large, "a", onDemand, "s1", ""), quotaFor,
			[]question{{large, "b", onDemand, "", true}, {small, "a", onDemand, "", false}, {large, "a", spot, "", false}, {gpu, "a", onDemand, "", false}},
		},
		"quota of a smaller machine": {
			both(refused("VcpuLimitExceeded", "", small, "a", onDemand, "", ""), refused("VcpuLimitExceeded", "", large, "a", onDemand, "", "")), quotaFor,
			[]question{{small, "a", onDemand, "", true}},
		},
		"spot quota": {
			refused("MaxSpotInstanceCountExceeded", "", small, "a", spot, "", ""), quotaFor,
			[]question{{gpu, "b", spot, "", true}, {small, "a", onDemand, "", false}},
		},
		"spot role": {
			refused(spotRoleCode, "", small, "a", spot, "", ""), permissionFor,
			[]question{{large, "b", spot, "", true}, {small, "a", onDemand, "", false}},
		},
		"account": {
			refused("MaxFleetCountExceeded", "", small, "", onDemand, "", ""), accountFor,
			[]question{{small, "a", spot, "", true}, {gpu, "b", onDemand, "", true}},
		},
		"reservation": {
			refused("ReservationCapacityExceeded", "", small, "a", reserved, "s1", "cr-1"), addressesFor,
			[]question{{small, "a", reserved, "cr-1", true}, {small, "a", reserved, "cr-2", false}, {small, "a", onDemand, "", false}},
		},
		"one pool of a reservation": {
			refused("InsufficientInstanceCapacity", "", small, "a", reserved, "s1", "cr-1"), capacityFor,
			[]question{{small, "a", reserved, "cr-1", true}, {small, "a", reserved, "cr-2", false}},
		},
		"one subnet": {
			both(refused(freeAddressesCode, "", small, "a", spot, "s1", ""), refused(freeAddressesCode, "", small, "b", spot, "s3", "")), addressesFor,
			[]question{{small, "b", onDemand, "", true}, {small, "a", spot, "", false}},
		},
		"all subnets": {
			both(refused(freeAddressesCode, "", small, "a", spot, "s1", ""), refused(freeAddressesCode, "", small, "a", spot, "s2", "")), addressesFor,
			[]question{{large, "a", onDemand, "", true}, {small, "b", spot, "", false}},
		},
	}
	subnets := map[string][]string{"a": {"s1", "s2"}, "b": {"s3"}}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newUnavailable()
			blocked := func(q question) bool { return u.blocks(q.of, q.zone, q.kind, q.reservation, subnets[q.zone]) != "" }
			before := u.sequence
			c.mark(u)
			if u.sequence == before || u.empty() {
				t.Error("marking did not count")
			}
			for _, q := range c.ask {
				if got := blocked(q); got != q.want {
					t.Errorf("%s %s %s %s: blocked is %v, want %v", q.of.name, q.zone, q.kind, q.reservation, got, q.want)
				}
			}
			u.expire(now.Add(c.ttl - time.Second))
			marked := u.sequence
			if !blocked(c.ask[0]) {
				t.Error("forgotten too early")
			}
			u.expire(now.Add(c.ttl))
			if u.sequence == marked || !u.empty() || blocked(c.ask[0]) || u.subnets != 0 {
				t.Error("still remembered after its time")
			}
		})
	}
}

// What says nothing about an offering is not remembered (B53: a throttle is not a used-up reservation).
func TestNotRemembered(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"RequestLimitExceeded", "InternalError", "ExpiredToken", "UnauthorizedOperation", "InvalidAMIID.NotFound", ""} {
		u := newUnavailable()
		u.remember(time.Unix(1, 0), moodOf(code, ""), &hardware{name: "m5.large"}, "a", reserved, "s1", "cr-1", code)
		if !u.empty() {
			t.Errorf("%s is remembered: %v", code, u.marks)
		}
	}
}

// A reply that does not say what it is about rules nothing out.
func TestNamelessRefusal(t *testing.T) {
	t.Parallel()
	u := newUnavailable()
	for _, code := range []string{"InsufficientInstanceCapacity", "VcpuLimitExceeded", freeAddressesCode, "ReservationCapacityExceeded"} {
		u.remember(time.Unix(1, 0), moodOf(code, ""), &hardware{}, "", "", "", "", code)
	}
	if !u.empty() {
		t.Errorf("remembered: %v", u.marks)
	}
}

func TestQuotaGroup(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ category, family, want string }{
		"m": {"m", "m5", "standard"}, "r": {"r", "r6g", "standard"}, "g": {"g", "g5", "g-vt"}, "gr": {"gr", "gr6", "g-vt"}, "vt": {"vt", "vt1", "g-vt"},
		"p": {"p", "p4d", "p"}, "inf": {"inf", "inf2", "inf"}, "trn": {"trn", "trn1", "trn"}, "dl": {"dl", "dl1", "dl"}, "hpc": {"hpc", "hpc7g", "hpc"},
		"x": {"x", "x2gd", "x"}, "u": {"u", "u-6tb1", "u"}, "t": {"t", "t3", "standard"}, "im": {"im", "im4gn", "standard"}, "is": {"is", "is4gen", "standard"}, "none": {"", "", ""},
	} {
		if got := quotaGroup(c.category, c.family); got != c.want {
			t.Errorf("%s: quotaGroup(%q, %q) = %q, want %q", name, c.category, c.family, got, c.want)
		}
	}
}
