// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"strings"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/fakeaws/catalogue"
)

// quotaClass is which of EC2's vCPU quotas counts the type: each capacity type has one of every class.
func quotaClass(it catalogue.Type) string {
	family := strings.TrimRight(it.Family(), "-")
	letters := strings.IndexFunc(family, func(r rune) bool { return r < 'a' || r > 'z' })
	if letters < 0 {
		letters = len(family)
	}
	switch prefix := family[:letters]; prefix {
	case "a", "c", "d", "h", "i", "im", "is", "m", "r", "t", "z":
		return "standard"
	case "g", "gr", "vt":
		return "g"
	case "u":
		return "high-memory"
	default:
		return prefix // p, f, inf, trn, dl, hpc, x, mac
	}
}

// quotaReached says whether one more instance would exceed a quota of its capacity type: that of its class, which is
// called "spot/g", or that of all classes together, which is called "spot".
func (s *Server) quotaReached(capacityType string, it catalogue.Type) (quota int, reached bool) {
	class := quotaClass(it)
	for name, quota := range s.settings.VCPUQuota {
		ofType, ofClass, one := strings.Cut(name, "/")
		if ofType != capacityType || (one && ofClass != class) {
			continue
		}
		used := 0
		for _, in := range s.instances {
			if in.capacityType == capacityType && in.state != terminated && (!one || quotaClass(in.it) == class) {
				used += in.it.VCPU
			}
		}
		if used+it.VCPU > quota {
			return quota, true
		}
	}
	return 0, false
}
