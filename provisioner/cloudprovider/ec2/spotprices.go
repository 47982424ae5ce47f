// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// readSpotPrices reads the present price of every pool. A pool without one has no spot offering.
func (p *Provider) readSpotPrices(ctx context.Context) (map[spotPool]float64, error) {
	now := time.Now()
	prices := map[spotPool]float64{}
	newest := map[spotPool]time.Time{}
	pages := ec2.NewDescribeSpotPriceHistoryPaginator(p.ec2, &ec2.DescribeSpotPriceHistoryInput{
		ProductDescriptions: []string{"Linux/UNIX", "Linux/UNIX (Amazon VPC)"}, StartTime: &now, MaxResults: aws.Int32(spotPage),
	}, func(o *ec2.DescribeSpotPriceHistoryPaginatorOptions) { o.StopOnDuplicateToken = true })
	for page := 0; pages.HasMorePages(); page++ {
		if page == maxPages {
			return nil, fmt.Errorf("describing spot prices: no end after %d pages", page)
		}
		reply, err := nextPage(ctx, pages.NextPage)
		if err != nil {
			return nil, fmt.Errorf("describing spot prices: %w", err)
		}
		for i := range reply.SpotPriceHistory {
			addSpotPrice(prices, newest, &reply.SpotPriceHistory[i])
		}
	}
	if len(prices) == 0 {
		return nil, errors.New("describing spot prices: there are none")
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
