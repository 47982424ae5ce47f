// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
)

// Listing is what a region sells, for programs that look and launch nothing. It computes types as a Provider does.
type Listing struct {
	provider *Provider
	sold     *catalogue
}

// ErrNoSubnet says that the selectors of a class match no subnet.
var ErrNoSubnet = errors.New("no zone")

// Zone is an availability zone; ID is empty where it is not known.
type Zone struct{ Name, ID string }

// ReadListing asks AWS what the region of cfg sells, by describing only.
func ReadListing(ctx context.Context, cfg aws.Config) (*Listing, error) {
	p := New(Options{AWS: cfg})
	p.priceWait = onDemandTimeout // a list of old prices helps nobody
	sold, err := p.refreshCatalogue(ctx)
	if err != nil {
		return nil, err
	}
	return &Listing{p, sold}, nil
}

// Zones are all in which the region sells anything, by name.
func (l *Listing) Zones() []Zone {
	names := map[string]bool{}
	for _, zones := range l.sold.zones {
		for _, name := range zones {
			names[name] = true
		}
	}
	var list []Zone
	for _, name := range slices.Sorted(maps.Keys(names)) {
		list = append(list, Zone{Name: name})
	}
	return list
}

// ZonesOf are those of the class's subnets: of its status, or else of what its selectors match now, which AWS is asked.
func (l *Listing) ZonesOf(ctx context.Context, class *awsv1.EC2NodeClass) ([]Zone, error) {
	ids := map[string]string{}
	for _, s := range class.Status.Subnets {
		ids[s.Zone] = s.ZoneID
	}
	if len(ids) == 0 {
		subnets, err := l.provider.readSubnets(ctx, class.Spec.SubnetSelectorTerms)
		if err != nil {
			return nil, err
		}
		for i := range subnets {
			ids[subnets[i].zone] = subnets[i].zoneID
		}
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf("spec.subnetSelectorTerms: %w: %s", ErrNoSubnet, missingSubnets(&class.Spec))
	}
	var list []Zone
	for _, name := range slices.Sorted(maps.Keys(ids)) {
		list = append(list, Zone{name, ids[name]})
	}
	return list, nil
}

// InstanceTypes are all types that are sold, as the class would launch them in the zones, by name; those that it cannot
// launch are there without an available offering. Images are not looked up: a type that no image of the class boots on
// is listed too. The error begins with the path of the field of the class that it is about.
func (l *Listing) InstanceTypes(of *awsv1.EC2NodeClass, zones []Zone) ([]*cloudprovider.InstanceType, error) {
	family, wrong := familyOf(&of.Spec)
	if wrong == nil {
		wrong = validate(&of.Spec, family)
	}
	if wrong != nil {
		return nil, wrong
	}
	c := &class{object: of, family: family, catalogue: l.sold, shape: l.provider.shapeOf(&of.Spec, family)}
	ids := map[string]string{}
	for _, z := range zones {
		ids[z.Name] = z.ID
	}
	var list []*cloudprovider.InstanceType
	for _, name := range slices.Sorted(maps.Keys(l.sold.types)) {
		t, err := c.typeOf(l.sold.types[name], ids)
		if err != nil {
			return nil, fmt.Errorf("spec.%w", err)
		}
		list = append(list, t)
	}
	return list, nil
}

// Error makes a fault what is returned to those who have no conditions to set.
func (f *fault) Error() string { return f.message }
