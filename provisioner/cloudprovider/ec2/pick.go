// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
)

// capacityTypes in the order in which they are asked for: what is paid for already, then what is cheap.
var capacityTypes = []string{reserved, spot, onDemand}

const reserved = "reserved"

// capacityTypeOf is the capacity type that a launch with the options asks for: one call asks for one.
func capacityTypeOf(options []cloudprovider.LaunchOption) string {
	for _, capacityType := range capacityTypes {
		if slices.ContainsFunc(options, func(o cloudprovider.LaunchOption) bool { return o.Offering.CapacityType == capacityType }) {
			return capacityType
		}
	}
	return onDemand
}

// pick takes from the options, in their order, what one launch asks for: what is not known to be unavailable, of one
// capacity type, no spot dearer than on-demand, and nothing exotic while something plain is there. What minValues asks
// for comes before the last two. The caller holds Provider.mu.
func pick(c *class, u *unavailable, rooms map[string]room, options []cloudprovider.LaunchOption, minValues map[string]int) ([]cloudprovider.LaunchOption, *cloudprovider.LaunchError) {
	var there []cloudprovider.LaunchOption
	var why []string
	full := c.fullZones(rooms)
	for i := range options {
		o := &options[i]
		how, ok := c.launchable[o.InstanceType.Name]
		if !ok {
			continue
		}
		if reason := cmp.Or(full[o.Offering.Zone], u.blocks(how.hardware, o.Offering.Zone, o.Offering.CapacityType, "", c.byZone[o.Offering.Zone])); reason != "" {
			if !slices.Contains(why, reason) {
				why = append(why, reason)
			}
			continue
		}
		there = append(there, *o)
	}
	if len(there) == 0 {
		if len(why) == 0 {
			return nil, nothingLeft("the class can launch none of the options")
		}
		if len(full) > 0 {
			u.sequence++ // the planner is to see what launches on their way have taken since EC2 counted
		}
		return nil, nothingLeft("none of the options is available now: " + strings.Join(why, ", "))
	}
	if short := cloudprovider.Short(there, minValues); short != "" {
		return nil, nothingLeft("what is available now does not meet minValues: " + short)
	}
	if len(minValues) == 0 {
		there = plain(c, withoutDearSpot(there))
	}
	capacityType := capacityTypeOf(there)
	return slices.DeleteFunc(there, func(o cloudprovider.LaunchOption) bool { return o.Offering.CapacityType != capacityType }), nil
}

// withoutDearSpot drops spot offerings that cost more than the cheapest on-demand one.
func withoutDearSpot(options []cloudprovider.LaunchOption) []cloudprovider.LaunchOption {
	cheapest := math.Inf(1)
	for i := range options {
		if options[i].Offering.CapacityType == onDemand {
			cheapest = min(cheapest, options[i].Offering.Price)
		}
	}
	return slices.DeleteFunc(options, func(o cloudprovider.LaunchOption) bool {
		return o.Offering.CapacityType == spot && o.Offering.Price > cheapest
	})
}

// plain drops bare metal, which boots for long, and what has accelerators, if anything else is left.
func plain(c *class, options []cloudprovider.LaunchOption) []cloudprovider.LaunchOption {
	exotic := func(o cloudprovider.LaunchOption) bool {
		h := c.launchable[o.InstanceType.Name].hardware
		return h.exotic()
	}
	if !slices.ContainsFunc(options, func(o cloudprovider.LaunchOption) bool { return !exotic(o) }) {
		return options
	}
	return slices.DeleteFunc(options, exotic)
}

// nothingLeft refuses a launch of which EC2 was not told.
func nothingLeft(why string) *cloudprovider.LaunchError {
	return &cloudprovider.LaunchError{
		Failure: cloudprovider.InsufficientCapacity, Reason: reasonCapacity, Untried: true, Err: errors.New(why),
	}
}
