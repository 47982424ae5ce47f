// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"
)

const (
	typesTTL     = 12 * time.Hour
	zonesTTL     = 5 * time.Minute
	onDemandTTL  = 12 * time.Hour
	spotTTL      = 5 * time.Minute
	typesPage    = 100
	zonesPage    = 1000
	spotPage     = 2000
	productsPage = 100
)

// pool is a place where EC2 may have machines of a type.
type pool struct{ instanceType, zone, capacityType string }

// catalogue is what the region sells. It is replaced, never changed.
type catalogue struct {
	types map[string]*hardware
	zones map[string][]string // by instance type, sorted
	prices

	typesAt, zonesAt time.Time
	version          int // grows with every change
}

// refreshCatalogue reads what is older than its time to live, all parts at once. The caller holds p.refreshing. A part
// that cannot be read keeps its old content; types and zones are required once, prices are not.
func (p *Provider) refreshCatalogue(ctx context.Context) (*catalogue, error) {
	p.mu.Lock()
	known := p.catalogue
	p.mu.Unlock()
	next := catalogue{prices: prices{builtIn: builtInPrices(p.region)}}
	if known != nil {
		next = *known
	}
	now := time.Now()
	group, groupCtx := errgroup.WithContext(ctx)
	logger := klog.FromContext(ctx)
	part := func(readAt *time.Time, ttl time.Duration, required bool, what string, read func(context.Context) error) {
		if !readAt.IsZero() && now.Sub(*readAt) < ttl {
			return
		}
		group.Go(func() error {
			switch err := read(groupCtx); {
			case err == nil:
				*readAt = now
			case required && readAt.IsZero():
				return err
			default:
				if p.said.news(what, describe(err)) {
					logger.Error(err, "Keeping the older part of the catalogue", "part", what)
				}
			}
			return nil
		})
	}
	part(&next.typesAt, typesTTL, true, "types", func(ctx context.Context) error { return keep(&next.types)(p.readTypes(ctx)) })
	part(&next.zonesAt, zonesTTL, true, "zones", func(ctx context.Context) error { return keep(&next.zones)(p.readZones(ctx)) })
	spot := next.prices
	group.Go(func() error {
		p.refreshSpot(groupCtx, &spot, now)
		return nil
	})
	onDemand := next.prices
	group.Go(func() error {
		p.refreshOnDemand(groupCtx, &onDemand, now)
		return nil
	})
	if err := group.Wait(); err != nil {
		return nil, err
	}
	next.spot, next.spotAgain = spot.spot, spot.spotAgain
	next.onDemand, next.onDemandAgain = onDemand.onDemand, onDemand.onDemandAgain
	p.mu.Lock()
	defer p.mu.Unlock()
	next.file = p.priceFile
	if p.catalogue != nil {
		next.version = p.catalogue.version
	}
	if known == nil || !next.sellsAs(known) {
		next.version++
	}
	p.catalogue = &next
	return &next, nil
}

// sellsAs compares what does change from one read to the next.
func (c *catalogue) sellsAs(before *catalogue) bool {
	return c.typesAt.Equal(before.typesAt) && maps.EqualFunc(c.zones, before.zones, slices.Equal) && c.prices.same(&before.prices)
}

// keep stores a value that was read without error.
func keep[T any](into *T) func(T, error) error {
	return func(value T, err error) error {
		if err == nil {
			*into = value
		}
		return err
	}
}

func (p *Provider) readTypes(ctx context.Context) (map[string]*hardware, error) {
	types := map[string]*hardware{}
	pages := ec2.NewDescribeInstanceTypesPaginator(p.ec2, &ec2.DescribeInstanceTypesInput{
		MaxResults: aws.Int32(typesPage),
		Filters: []ec2types.Filter{
			filter("supported-virtualization-type", "hvm"),
			filter("processor-info.supported-architecture", "x86_64", "arm64"),
		},
	})
	for pages.HasMorePages() {
		page, err := nextPage(ctx, pages.NextPage)
		if err != nil {
			return nil, fmt.Errorf("describing instance types: %w", err)
		}
		for i := range page.InstanceTypes {
			if h := newHardware(&page.InstanceTypes[i], p.region, limits()[string(page.InstanceTypes[i].InstanceType)]); h != nil {
				types[h.name] = h
			}
		}
	}
	if len(types) == 0 {
		return nil, fmt.Errorf("describing instance types: %s sells none", p.region)
	}
	return types, nil
}

func (p *Provider) readZones(ctx context.Context) (map[string][]string, error) {
	zones := map[string][]string{}
	pages := ec2.NewDescribeInstanceTypeOfferingsPaginator(p.ec2, &ec2.DescribeInstanceTypeOfferingsInput{
		LocationType: ec2types.LocationTypeAvailabilityZone, MaxResults: aws.Int32(zonesPage),
	})
	for pages.HasMorePages() {
		page, err := nextPage(ctx, pages.NextPage)
		if err != nil {
			return nil, fmt.Errorf("describing instance type offerings: %w", err)
		}
		for _, offering := range page.InstanceTypeOfferings {
			name := string(offering.InstanceType)
			zones[name] = append(zones[name], aws.ToString(offering.Location))
		}
	}
	for name := range zones {
		slices.Sort(zones[name])
		zones[name] = slices.Compact(zones[name])
	}
	return zones, nil
}

func filter(name string, values ...string) ec2types.Filter {
	return ec2types.Filter{Name: &name, Values: values}
}

// nextPage gives every page the deadline of a call.
func nextPage[Out, Opts any](ctx context.Context, next func(context.Context, ...func(*Opts)) (Out, error)) (Out, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return next(ctx)
}
