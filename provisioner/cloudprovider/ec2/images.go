// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	v1 "k8s.io/api/core/v1"
)

const imagesPage = 1000

// image is a machine image that the class selects.
type image struct {
	awsv1.AMI
	created time.Time
}

// imageQuery is one DescribeImages.
type imageQuery struct {
	filters []ec2types.Filter
	owners  []string
	// requirements by image id, besides the architecture: the image serves what meets one of the lists.
	requirements map[string][][]v1.NodeSelectorRequirement
}

// readImages returns the class's images, newest first: of those with equal requirements the best one. The error says
// what a later try may cure; nothing found is no error.
func (p *Provider) readImages(ctx context.Context, spec *awsv1.EC2NodeClassSpec, cluster *clusterFacts) ([]image, error) {
	queries, err := p.imageQueries(ctx, spec.AMISelectorTerms, cluster)
	if err != nil {
		return nil, err
	}
	best := map[string]image{}
	for _, query := range queries {
		found, err := p.describeImages(ctx, query)
		if err != nil {
			return nil, err
		}
		for _, candidate := range found {
			if p.isGone(candidate.ID) {
				continue
			}
			key := requirementsKey(candidate.Requirements)
			if before, ok := best[key]; !ok || compareImages(candidate, before) < 0 {
				best[key] = candidate
			}
		}
	}
	return slices.SortedFunc(maps.Values(best), func(a, b image) int {
		return cmp.Or(b.created.Compare(a.created), cmp.Compare(a.ID, b.ID))
	}), nil
}

// compareImages sorts the better one first: not deprecated, newer, greater name.
func compareImages(a, b image) int {
	if a.Deprecated != b.Deprecated {
		if b.Deprecated {
			return -1
		}
		return 1
	}
	return cmp.Or(b.created.Compare(a.created), cmp.Compare(b.Name, a.Name))
}

func (p *Provider) imageQueries(ctx context.Context, terms []awsv1.AMISelectorTerm, cluster *clusterFacts) ([]imageQuery, error) {
	var queries []imageQuery
	var ids []string
	for _, term := range terms {
		switch {
		case term.Alias != "":
			query, published, err := p.aliasQuery(ctx, term.Alias, cluster.version)
			if err != nil {
				return nil, err
			}
			if published {
				queries = append(queries, query)
			}
		case term.ID != "":
			ids = append(ids, term.ID)
		case term.SSMParameter != "":
			id, err := p.parameter(ctx, term.SSMParameter, false)
			if err != nil {
				return nil, err
			}
			if strings.HasPrefix(id, "ami-") {
				ids = append(ids, id)
			}
		case term.Name != "" || len(term.Tags) > 0: // an owner alone would be all images there are
			queries = append(queries, termQuery(term))
		}
	}
	if len(ids) > 0 {
		queries = append(queries, imageQuery{filters: []ec2types.Filter{filter("image-id", ids...)}})
	}
	return queries, nil
}

func termQuery(term awsv1.AMISelectorTerm) imageQuery {
	query := imageQuery{filters: tagFilters(term.Tags)}
	if term.Name != "" {
		query.filters = append(query.filters, filter("name", term.Name))
		query.owners = []string{"self", "amazon"}
	}
	if term.Owner != "" {
		query.owners = []string{term.Owner}
	}
	return query
}

func (p *Provider) describeImages(ctx context.Context, query imageQuery) ([]image, error) {
	var found []image
	pages := ec2.NewDescribeImagesPaginator(p.ec2, &ec2.DescribeImagesInput{
		Filters: append(slices.Clone(query.filters), filter("state", string(ec2types.ImageStateAvailable))),
		Owners:  query.owners, IncludeDeprecated: aws.Bool(true), MaxResults: aws.Int32(imagesPage),
	})
	now := time.Now()
	for pages.HasMorePages() {
		page, err := nextPage(ctx, pages.NextPage)
		if err != nil {
			return nil, fmt.Errorf("describing images: %w", err)
		}
		for i := range page.Images {
			uses := query.requirements[aws.ToString(page.Images[i].ImageId)]
			if uses == nil {
				uses = [][]v1.NodeSelectorRequirement{nil}
			}
			for _, requirements := range uses {
				if candidate, ok := newImage(&page.Images[i], requirements, now); ok {
					found = append(found, candidate)
				}
			}
		}
	}
	return found, nil
}

// newImage is false for architectures that Kubernetes does not know.
func newImage(of *ec2types.Image, requirements []v1.NodeSelectorRequirement, now time.Time) (image, bool) {
	arch, ok := awsv1.AWSToKubeArchitectures[string(of.Architecture)]
	if !ok {
		return image{}, false
	}
	requirements = append(slices.Clone(requirements), v1.NodeSelectorRequirement{Key: v1.LabelArchStable, Operator: v1.NodeSelectorOpIn, Values: []string{arch}})
	slices.SortFunc(requirements, func(a, b v1.NodeSelectorRequirement) int {
		return cmp.Or(cmp.Compare(len(a.Key), len(b.Key)), cmp.Compare(a.Key, b.Key))
	})
	created, err := time.Parse(time.RFC3339, aws.ToString(of.CreationDate))
	if err != nil {
		created = time.Time{} // the oldest of all
	}
	deprecation, err := time.Parse(time.RFC3339, aws.ToString(of.DeprecationTime))
	return image{
		AMI: awsv1.AMI{
			ID: aws.ToString(of.ImageId), Name: aws.ToString(of.Name), Requirements: requirements,
			Deprecated: err == nil && !deprecation.After(now),
		},
		created: created,
	}, true
}

func requirementsKey(requirements []v1.NodeSelectorRequirement) string {
	var key strings.Builder
	for _, r := range requirements {
		key.WriteString(r.Key + " " + string(r.Operator) + " " + strings.Join(r.Values, ",") + ";")
	}
	return key.String()
}

// imageNamed is the name of an image of the class, empty if there is none.
func (c *class) imageNamed(id string) string {
	if i := slices.IndexFunc(c.images, func(of image) bool { return of.ID == id }); i >= 0 {
		return c.images[i].Name
	}
	return ""
}

// imageFor is the first image that boots on the type.
func imageFor(images []image, labels map[string]string) (image, bool) {
	i := slices.IndexFunc(images, func(candidate image) bool {
		return !slices.ContainsFunc(candidate.Requirements, func(r v1.NodeSelectorRequirement) bool { return !admits(r, labels) })
	})
	if i < 0 {
		return image{}, false
	}
	return images[i], true
}

// admits knows the operators that images are described with.
func admits(r v1.NodeSelectorRequirement, labels map[string]string) bool {
	value, has := labels[r.Key]
	switch r.Operator {
	case v1.NodeSelectorOpIn:
		return has && slices.Contains(r.Values, value)
	case v1.NodeSelectorOpExists:
		return has
	case v1.NodeSelectorOpDoesNotExist:
		return !has
	case v1.NodeSelectorOpNotIn, v1.NodeSelectorOpGt, v1.NodeSelectorOpLt:
	}
	return false
}
