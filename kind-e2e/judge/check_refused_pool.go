// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// refusedFor is how long a pool that EC2 refused is left alone.
	refusedFor = 3 * time.Minute
	// fullFor is how long a subnet without free addresses is: pods and machines give some back.
	fullFor = time.Minute
	// inFlight is how old a refusal must be for a new launch to heed it.
	inFlight = time.Second
)

// poolCodes are refusals that speak of the pool: an instance type in a zone, as a capacity type.
var poolCodes = []string{
	"InsufficientInstanceCapacity", "UnfulfillableCapacity", "Unsupported", "MaxSpotInstanceCountExceeded", "VcpuLimitExceeded",
}

// refusedPool: nobody launches into a pool or a subnet that EC2 has refused to them a moment ago. A replayed token may: it
// asks what became of an earlier launch.
type refusedPool struct {
	noStep

	in *input
}

func newRefusedPool(in *input) invariant { return &refusedPool{in: in} }

// refusal is that EC2 had nothing in a place, and when the client learned it.
type refusal struct {
	at   time.Time
	code string
}

func (r *refusedPool) finish(_ *world, report reporter) {
	refused := map[string][]refusal{} // by client and place, in the order of the replies
	tokens := map[string]bool{}
	for _, call := range r.in.launchCalls() {
		if token := call.clientToken(); !tokens[token] || token == "" {
			tokens[token] = true
			r.checkCall(call, refused, report)
		}
		answered := call.Time.Add(time.Duration(call.DurationMS) * time.Millisecond)
		if call.Status != 200 {
			continue
		}
		for _, failure := range call.PoolErrors {
			place := call.AccessKey + " "
			switch {
			case failure.Code == "InsufficientFreeAddressesInSubnet":
				place += failure.SubnetID
			case slices.Contains(poolCodes, failure.Code):
				place += poolName(failure.InstanceType, failure.Zone, failure.CapacityType)
			default:
				continue
			}
			refused[place] = append(refused[place], refusal{at: answered, code: failure.Code})
		}
	}
}

// checkCall reports the first of the call's pools that it should not name, and how many there are.
func (r *refusedPool) checkCall(call *Call, refused map[string][]refusal, report reporter) {
	var named []string
	because := refusal{}
	for _, override := range call.overrides() {
		pool := poolName(override.instanceType, override.zone, call.param("TargetCapacitySpecification.DefaultTargetCapacityType"))
		for place, memory := range map[string]time.Duration{pool: refusedFor, override.subnet: fullFor} {
			for _, was := range slices.Backward(refused[call.AccessKey+" "+place]) {
				since := call.Time.Sub(was.at)
				if since < inFlight || since >= memory {
					continue
				}
				named, because = append(named, place), was
				break
			}
		}
	}
	if len(named) > 0 {
		report(call.Time.Time, named[0], "asked for again %s after %s (%d refused pools in one launch)",
			round(call.Time.Sub(because.at)), because.code, len(named))
	}
}

func poolName(instanceType, zone, capacityType string) string {
	return fmt.Sprintf("%s/%s/%s", instanceType, zone, capacityType)
}

// launchCalls are the calls that asked for instances, in order of arrival.
func (s *State) launchCalls() []*Call {
	var calls []*Call
	for i := range s.calls {
		if s.calls[i].launches() {
			calls = append(calls, &s.calls[i])
		}
	}
	slices.SortStableFunc(calls, func(a, b *Call) int { return cmp.Compare(a.Seq, b.Seq) })
	return calls
}

type override struct{ instanceType, zone, subnet string }

// overrides are the pools that a CreateFleet names.
func (c *Call) overrides() []override {
	byIndex := map[string]*override{}
	for key := range c.Params {
		prefix, field, ok := cutLast(key, ".")
		if !ok || !strings.HasPrefix(key, "LaunchTemplateConfigs.") || !strings.Contains(prefix, ".Overrides.") {
			continue
		}
		if byIndex[prefix] == nil {
			byIndex[prefix] = &override{}
		}
		switch field {
		case "InstanceType":
			byIndex[prefix].instanceType = c.param(key)
		case "AvailabilityZone":
			byIndex[prefix].zone = c.param(key)
		case "SubnetId":
			byIndex[prefix].subnet = c.param(key)
		}
	}
	var all []override
	for _, o := range byIndex {
		all = append(all, *o)
	}
	slices.SortFunc(all, func(a, b override) int {
		return cmp.Or(cmp.Compare(a.instanceType, b.instanceType), cmp.Compare(a.zone, b.zone), cmp.Compare(a.subnet, b.subnet))
	})
	return all
}

func cutLast(text, separator string) (before, after string, found bool) {
	i := strings.LastIndex(text, separator)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(separator):], true
}
