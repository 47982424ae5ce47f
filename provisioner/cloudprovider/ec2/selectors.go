// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
)

const selectorPage = 500

// subnet is a subnet that the class selects.
type subnet struct {
	id, zone, zoneID string
	free             int64 // addresses, when it was read
	readAt           time.Time
}

// tagFilters are ANDed; the value * stands for any value.
func tagFilters(tags map[string]string) []ec2types.Filter {
	var filters []ec2types.Filter
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		if tags[key] == "*" {
			filters = append(filters, filter("tag-key", key))
		} else {
			filters = append(filters, filter("tag:"+key, tags[key]))
		}
	}
	return filters
}

// readSubnets returns the selected subnets, most free addresses first. In a term with an id the tags do not count.
func (p *Provider) readSubnets(ctx context.Context, terms []awsv1.SubnetSelectorTerm) ([]subnet, error) {
	var ids []string
	var queries [][]ec2types.Filter
	for _, term := range terms {
		switch {
		case term.ID != "":
			ids = append(ids, term.ID)
		case len(term.Tags) > 0:
			queries = append(queries, tagFilters(term.Tags))
		}
	}
	if len(ids) > 0 {
		queries = append(queries, []ec2types.Filter{filter("subnet-id", ids...)})
	}
	found := map[string]subnet{}
	asked := time.Now()
	for _, filters := range queries {
		pages := ec2.NewDescribeSubnetsPaginator(p.ec2, &ec2.DescribeSubnetsInput{Filters: filters, MaxResults: aws.Int32(selectorPage)})
		for pages.HasMorePages() {
			page, err := nextPage(ctx, pages.NextPage)
			if err != nil {
				return nil, fmt.Errorf("describing subnets: %w", err)
			}
			for _, s := range page.Subnets {
				id := aws.ToString(s.SubnetId)
				found[id] = subnet{id: id, readAt: asked, zone: aws.ToString(s.AvailabilityZone), zoneID: aws.ToString(s.AvailabilityZoneId), free: int64(aws.ToInt32(s.AvailableIpAddressCount))}
			}
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b subnet) int {
		return cmp.Or(cmp.Compare(b.free, a.free), cmp.Compare(a.id, b.id))
	}), nil
}

// readSecurityGroups returns the selected groups by id. In a term an id counts before a name, a name before tags.
func (p *Provider) readSecurityGroups(ctx context.Context, terms []awsv1.SecurityGroupSelectorTerm) ([]awsv1.SecurityGroup, error) {
	var ids, names []string
	var queries [][]ec2types.Filter
	for _, term := range terms {
		switch {
		case term.ID != "":
			ids = append(ids, term.ID)
		case term.Name != "":
			names = append(names, term.Name)
		case len(term.Tags) > 0:
			queries = append(queries, tagFilters(term.Tags))
		}
	}
	if len(ids) > 0 {
		queries = append(queries, []ec2types.Filter{filter("group-id", ids...)})
	}
	if len(names) > 0 {
		queries = append(queries, []ec2types.Filter{filter("group-name", names...)})
	}
	found := map[string]awsv1.SecurityGroup{}
	for _, filters := range queries {
		pages := ec2.NewDescribeSecurityGroupsPaginator(p.ec2, &ec2.DescribeSecurityGroupsInput{Filters: filters, MaxResults: aws.Int32(selectorPage)})
		for pages.HasMorePages() {
			page, err := nextPage(ctx, pages.NextPage)
			if err != nil {
				return nil, fmt.Errorf("describing security groups: %w", err)
			}
			for _, g := range page.SecurityGroups {
				id := aws.ToString(g.GroupId)
				found[id] = awsv1.SecurityGroup{ID: id, Name: aws.ToString(g.GroupName)}
			}
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b awsv1.SecurityGroup) int { return cmp.Compare(a.ID, b.ID) }), nil
}
