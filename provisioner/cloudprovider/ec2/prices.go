// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	pricingtypes "github.com/aws/aws-sdk-go-v2/service/pricing/types"
	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"
)

// readOnDemandPrices asks the price list service for machines and bare metal, which it lists apart. One of the two
// may be missing: its types then keep the prices they have.
func (p *Provider) readOnDemandPrices(ctx context.Context) (map[string]float64, error) {
	shared := map[string]float64{}
	metal := map[string]float64{}
	var sharedErr, metalErr error
	var group errgroup.Group
	group.Go(func() error {
		sharedErr = p.readProducts(ctx, shared, "Shared", "Compute Instance")
		return nil
	})
	group.Go(func() error {
		metalErr = p.readProducts(ctx, metal, "Dedicated", "Compute Instance (bare metal)")
		return nil
	})
	_ = group.Wait() // both errors are looked at below
	if sharedErr != nil {
		return nil, sharedErr
	}
	if metalErr != nil {
		klog.FromContext(ctx).Error(metalErr, "No prices of bare metal machines")
	}
	p.mu.Lock()
	prices := map[string]float64{}
	if p.catalogue != nil {
		maps.Copy(prices, p.catalogue.onDemand)
	}
	p.mu.Unlock()
	maps.Copy(prices, shared)
	maps.Copy(prices, metal)
	return prices, nil
}

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
	})
	for pages.HasMorePages() {
		page, err := nextPage(ctx, pages.NextPage)
		if err != nil {
			return fmt.Errorf("getting prices: %w", err)
		}
		for _, text := range page.PriceList {
			if name, price, ok := parseProduct(text, p.region); ok {
				into[name] = price
			}
		}
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

// parseProduct reads one price list entry; false if it has no usable price per hour.
func parseProduct(text, region string) (instanceType string, price float64, ok bool) {
	var entry product
	if err := json.Unmarshal([]byte(text), &entry); err != nil || entry.Product.Attributes.InstanceType == "" {
		return "", 0, false
	}
	currency := "USD"
	if strings.HasPrefix(region, "cn-") {
		currency = "CNY"
	}
	for _, term := range entry.Terms.OnDemand {
		for _, dimension := range term.PriceDimensions {
			if price, ok := parsePrice(dimension.PricePerUnit[currency]); ok {
				return entry.Product.Attributes.InstanceType, price, true
			}
		}
	}
	return "", 0, false
}

func parsePrice(text string) (float64, bool) {
	price, err := strconv.ParseFloat(text, 64)
	return price, err == nil && price > 0 && !math.IsInf(price, 0) && !math.IsNaN(price)
}

// readSpotPrices reads the present price of every pool. A pool without one has no spot offering.
func (p *Provider) readSpotPrices(ctx context.Context) (map[spotPool]float64, error) {
	now := time.Now()
	prices := map[spotPool]float64{}
	newest := map[spotPool]time.Time{}
	pages := ec2.NewDescribeSpotPriceHistoryPaginator(p.ec2, &ec2.DescribeSpotPriceHistoryInput{
		ProductDescriptions: []string{"Linux/UNIX", "Linux/UNIX (Amazon VPC)"}, StartTime: &now, MaxResults: aws.Int32(spotPage),
	})
	for pages.HasMorePages() {
		page, err := nextPage(ctx, pages.NextPage)
		if err != nil {
			return nil, fmt.Errorf("describing spot prices: %w", err)
		}
		for i := range page.SpotPriceHistory {
			addSpotPrice(prices, newest, &page.SpotPriceHistory[i])
		}
	}
	return prices, nil
}

func addSpotPrice(prices map[spotPool]float64, newest map[spotPool]time.Time, record *ec2types.SpotPrice) {
	price, ok := parsePrice(aws.ToString(record.SpotPrice))
	if !ok || record.Timestamp == nil {
		return
	}
	key := spotPool{string(record.InstanceType), aws.ToString(record.AvailabilityZone)}
	if !record.Timestamp.Before(newest[key]) {
		prices[key], newest[key] = price, *record.Timestamp
	}
}
