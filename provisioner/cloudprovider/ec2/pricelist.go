// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	pricingtypes "github.com/aws/aws-sdk-go-v2/service/pricing/types"
	"golang.org/x/sync/errgroup"
)

const (
	// maxPrice is per hour: more is no price of a machine.
	maxPrice = 100_000
	// maxPages is several times what there is.
	maxPages = 200
)

// pricingRegion is where the price list service answers for a region, "" where nobody does: only the commercial and the
// Chinese partition have one.
func pricingRegion(region string) string {
	switch {
	case strings.HasPrefix(region, "us-gov-"), strings.Contains(region, "-iso"), strings.HasPrefix(region, "eusc-"):
		return ""
	case strings.HasPrefix(region, "ap-"):
		return "ap-south-1"
	case strings.HasPrefix(region, "cn-"):
		return "cn-northwest-1"
	case strings.HasPrefix(region, "eu-"):
		return "eu-central-1"
	}
	return "us-east-1"
}

// readOnDemandPrices asks the price list service for machines and bare metal, which it lists apart. What was read
// before an error is returned with it.
func (p *Provider) readOnDemandPrices(ctx context.Context) (map[string]float64, error) {
	shared, metal := map[string]float64{}, map[string]float64{}
	var sharedErr, metalErr error
	var group errgroup.Group
	group.Go(func() error {
		sharedErr = p.readProducts(ctx, shared, "Shared", "Compute Instance")
		return nil
	})
	group.Go(func() error {
		metalErr = p.readProducts(ctx, metal, "Dedicated", "Compute Instance (bare metal)")
		if errors.Is(metalErr, errNoProducts) {
			metalErr = nil // some regions have none
		}
		return nil
	})
	_ = group.Wait() // both errors are joined below
	maps.Copy(shared, metal)
	return shared, errors.Join(sharedErr, metalErr)
}

// errNoProducts is an empty price list.
var errNoProducts = errors.New("getting prices: the price list is empty")

func (p *Provider) readProducts(ctx context.Context, into map[string]float64, tenancy, family string) error {
	match := func(field, value string) pricingtypes.Filter {
		return pricingtypes.Filter{Field: &field, Value: &value, Type: pricingtypes.FilterTypeTermMatch}
	}
	pages := pricing.NewGetProductsPaginator(p.pricing, &pricing.GetProductsInput{
		ServiceCode: aws.String("AmazonEC2"), MaxResults: aws.Int32(productsPage),
		Filters: []pricingtypes.Filter{
			match("regionCode", p.region), match("serviceCode", "AmazonEC2"), match("preInstalledSw", "NA"), match("operatingSystem", "Linux"),
			match("capacitystatus", "Used"), match("marketoption", "OnDemand"), match("tenancy", tenancy), match("productFamily", family),
		},
	}, func(o *pricing.GetProductsPaginatorOptions) { o.StopOnDuplicateToken = true })
	entries := 0
	for page := 0; pages.HasMorePages(); page++ {
		if page == maxPages {
			return fmt.Errorf("getting prices: no end after %d pages", page)
		}
		reply, err := nextPage(ctx, pages.NextPage)
		if err != nil {
			return fmt.Errorf("getting prices: %w", err)
		}
		entries += len(reply.PriceList)
		for _, text := range reply.PriceList {
			if name, price, ok := parseProduct(text, p.region); ok {
				into[name] = price
			}
		}
	}
	switch {
	case entries == 0:
		return errNoProducts
	case len(into) == 0:
		return fmt.Errorf("getting prices: none of %d entries has a price", entries)
	}
	return nil
}

// product is the part of a price list entry that is read.
type product struct {
	Product struct {
		Attributes struct {
			InstanceType string `json:"instanceType"`
		} `json:"attributes"`
	} `json:"product"`
	Terms struct {
		OnDemand map[string]struct {
			PriceDimensions map[string]struct {
				PricePerUnit map[string]string `json:"pricePerUnit"`
			} `json:"priceDimensions"`
		} `json:"OnDemand"`
	} `json:"terms"`
}

// parseProduct reads one price list entry; false if it has no usable price per hour. Of several prices the one with the
// first rate code counts, so that two reads of one entry agree.
func parseProduct(text, region string) (instanceType string, price float64, ok bool) {
	var entry product
	if err := json.Unmarshal([]byte(text), &entry); err != nil || entry.Product.Attributes.InstanceType == "" {
		return "", 0, false
	}
	currency := "USD"
	if strings.HasPrefix(region, "cn-") {
		currency = "CNY"
	}
	for _, offer := range slices.Sorted(maps.Keys(entry.Terms.OnDemand)) {
		dimensions := entry.Terms.OnDemand[offer].PriceDimensions
		for _, rate := range slices.Sorted(maps.Keys(dimensions)) {
			if price, ok := parsePrice(dimensions[rate].PricePerUnit[currency]); ok {
				return entry.Product.Attributes.InstanceType, price, true
			}
		}
	}
	return "", 0, false
}

// parsePrice reads a price per hour; what is none, is 0 or cannot be true is not ok.
func parsePrice(text string) (float64, bool) {
	price, err := strconv.ParseFloat(text, 64)
	return price, err == nil && price > 0 && price <= maxPrice && !math.IsNaN(price)
}
