// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	v1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
	"github.com/jit-scheduler/jit-scheduler/provisioner/scheduling"
)

// offeringKeys are the labels that differ between offerings of one type.
var offeringKeys = map[string]bool{v1.LabelTopologyZone: true, karpv1.CapacityTypeLabelKey: true, awsv1.LabelTopologyZoneID: true, ebsZoneLabel: true}

// matchingTypes are the types that pool and pod accept by label, whatever the offering.
func (p *pool) matchingTypes(terms []scheduling.Requirements) ([]*cloudprovider.InstanceType, string) {
	var own, out []*cloudprovider.InstanceType
	for _, t := range p.Types {
		if !p.matchesType(p.requirements, t) {
			continue
		}
		own = append(own, t)
		if slices.ContainsFunc(terms, func(r scheduling.Requirements) bool { return p.matchesType(r, t) }) {
			out = append(out, t)
		}
	}
	if len(own) == 0 {
		return nil, fmt.Sprintf("none of the %d instance types matches the requirements of NodePool %q; widen them", len(p.Types), p.name)
	}
	if len(out) > 0 {
		return out, ""
	}
	for _, term := range terms {
		for _, key := range sortedKeys(term) {
			one := scheduling.NewRequirements(term[key])
			if !slices.ContainsFunc(own, func(t *cloudprovider.InstanceType) bool { return p.matchesType(one, t) }) {
				return nil, fmt.Sprintf("none of the %d instance types of NodePool %q has %s, as the pod asks; widen the NodePool, or add one", len(own), p.name, term[key])
			}
		}
	}
	return nil, fmt.Sprintf("none of the %d instance types of NodePool %q has all labels that the pod asks for; widen the NodePool, or add one", len(own), p.name)
}

// matchesType compares only labels of the type; those of the pool were compared before.
func (p *pool) matchesType(rs scheduling.Requirements, t *cloudprovider.InstanceType) bool {
	for key, r := range rs {
		if _, fixed := p.labels[key]; fixed || offeringKeys[key] || slices.Contains(p.custom, key) {
			continue
		}
		if !r.Matches(t.Labels) {
			return false
		}
	}
	return true
}

// place is an offering of a type.
type place struct {
	typ      *cloudprovider.InstanceType
	offering cloudprovider.Offering
}

func (p *pool) matchingOfferings(types []*cloudprovider.InstanceType, terms []scheduling.Requirements) []place {
	return p.matching(types, terms, func(t *cloudprovider.InstanceType) []cloudprovider.Offering { return t.Offerings })
}

// unpriced are the offerings that would match, had they a price.
func (p *pool) unpriced(types []*cloudprovider.InstanceType, terms []scheduling.Requirements) []place {
	return p.matching(types, terms, func(t *cloudprovider.InstanceType) []cloudprovider.Offering { return t.Unpriced })
}

func (p *pool) matching(types []*cloudprovider.InstanceType, terms []scheduling.Requirements, offerings func(*cloudprovider.InstanceType) []cloudprovider.Offering) []place {
	var out []place
	for _, t := range types {
		for _, o := range offerings(t) {
			labels := o.Labels()
			labels[ebsZoneLabel] = o.Zone
			matches := func(rs scheduling.Requirements) bool {
				for key, r := range rs {
					if offeringKeys[key] && !r.Matches(labels) {
						return false
					}
				}
				return true
			}
			if matches(p.requirements) && slices.ContainsFunc(terms, func(r scheduling.Requirements) bool { return p.matchesType(r, t) && matches(r) }) {
				out = append(out, place{t, o})
			}
		}
	}
	return out
}

func (p *pool) noOffering(terms []scheduling.Requirements) string {
	zones, capacityTypes := map[string]bool{}, map[string]bool{}
	offered := func(rs scheduling.Requirements) bool { // by any offering at all
		for _, t := range p.Types {
			for _, o := range t.Offerings {
				zones[o.Zone], capacityTypes[o.CapacityType] = true, true
				labels := o.Labels()
				labels[ebsZoneLabel] = o.Zone
				if rs.Matches(labels) {
					return true
				}
			}
		}
		return false
	}
	var all, never []string
	for _, rs := range append([]scheduling.Requirements{p.requirements}, terms...) {
		for _, key := range sortedKeys(rs) {
			if s := rs[key].String(); offeringKeys[key] && !slices.Contains(all, s) {
				all = append(all, s)
				if !offered(scheduling.NewRequirements(rs[key])) {
					never = append(never, s)
				}
			}
		}
	}
	if len(never) > 0 {
		all = never
	}
	return fmt.Sprintf("no fitting instance type of NodePool %q is offered with %s (zones: %s; capacity types: %s); change the pod, or add subnets or capacity types",
		p.name, strings.Join(all, ", "), strings.Join(sortedKeys(zones), " "), strings.Join(sortedKeys(capacityTypes), " "))
}
