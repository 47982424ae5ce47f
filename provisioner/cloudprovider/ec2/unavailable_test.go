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
		of         *hardware
		zone, kind string
		want       bool
	}
	cases := map[string]struct {
		mark func(*unavailable)
		ask  []question
	}{
		"pool": {
			func(u *unavailable) { u.markPool(now, pool{"m5.large", "a", spot}) },
			[]question{{small, "a", spot, true}, {small, "b", spot, false}, {small, "a", onDemand, false}, {large, "a", spot, false}},
		},
		"quota": {
			func(u *unavailable) { u.markQuota(now, quotaKey{"standard", onDemand}, 16) },
			[]question{{large, "a", onDemand, true}, {small, "a", onDemand, false}, {large, "a", spot, false}, {gpu, "a", onDemand, false}},
		},
		"quota of a smaller machine": {func(u *unavailable) {
			u.markQuota(now, quotaKey{"standard", onDemand}, 2)
			u.markQuota(now, quotaKey{"standard", onDemand}, 16)
		}, []question{{small, "a", onDemand, true}}},
		"capacity type": {func(u *unavailable) { u.markCapacityType(now, spot) }, []question{{small, "a", spot, true}, {small, "a", onDemand, false}}},
		"one subnet":    {func(u *unavailable) { u.markSubnet(now, "s1") }, []question{{small, "a", spot, false}}},
		"all subnets": {func(u *unavailable) {
			u.markSubnet(now, "s1")
			u.markSubnet(now, "s2")
		}, []question{{small, "a", spot, true}, {small, "b", spot, false}}},
	}
	subnets := map[string][]string{"a": {"s1", "s2"}, "b": {"s3"}}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newUnavailable()
			before := u.sequence
			c.mark(u)
			if u.sequence == before || u.empty() {
				t.Error("marking did not count")
			}
			for _, q := range c.ask {
				if got := u.blocks(q.of, q.zone, q.kind, subnets[q.zone]); got != q.want {
					t.Errorf("%s %s %s: blocked is %v, want %v", q.of.name, q.zone, q.kind, got, q.want)
				}
			}
			u.expire(now.Add(unavailableFor - time.Second))
			marked := u.sequence
			if u.blocks(c.ask[0].of, c.ask[0].zone, c.ask[0].kind, subnets[c.ask[0].zone]) != c.ask[0].want {
				t.Error("forgotten too early")
			}
			u.expire(now.Add(unavailableFor))
			if u.sequence == marked || !u.empty() || u.blocks(c.ask[0].of, c.ask[0].zone, c.ask[0].kind, subnets[c.ask[0].zone]) {
				t.Error("still remembered after its time")
			}
		})
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
