// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
)

const (
	pinnedTTL  = 24 * time.Hour  // a parameter of one release never changes
	mutableTTL = 5 * time.Minute // "recommended", or a parameter of the user's
)

// parameter is a value read from Systems Manager.
type parameter struct {
	value  string
	readAt time.Time
}

// variant is one build of the AL2023 image.
type variant struct{ arch, name string }

var al2023Variants = []variant{{"x86_64", "standard"}, {"x86_64", "nvidia"}, {"x86_64", "neuron"}, {"arm64", "standard"}, {"arm64", "nvidia"}}

// requirements say on which types the variant is used.
func (v variant) requirements() []v1.NodeSelectorRequirement {
	need := func(key string, operator v1.NodeSelectorOperator) v1.NodeSelectorRequirement {
		return v1.NodeSelectorRequirement{Key: key, Operator: operator}
	}
	switch v.name {
	case "nvidia":
		return []v1.NodeSelectorRequirement{need(awsv1.LabelInstanceGPUCount, v1.NodeSelectorOpExists)}
	case "neuron":
		return []v1.NodeSelectorRequirement{need(awsv1.LabelInstanceAcceleratorCount, v1.NodeSelectorOpExists)}
	}
	return []v1.NodeSelectorRequirement{
		need(awsv1.LabelInstanceGPUCount, v1.NodeSelectorOpDoesNotExist),
		need(awsv1.LabelInstanceAcceleratorCount, v1.NodeSelectorOpDoesNotExist),
	}
}

// al2023Path is where EKS publishes the image id of a variant.
func al2023Path(kubernetes, version string, v variant) string {
	release := "recommended"
	if version != awsv1.AliasVersionLatest {
		release = fmt.Sprintf("amazon-eks-node-al2023-%s-%s-%s-%s", v.arch, v.name, kubernetes, version)
	}
	return fmt.Sprintf("/aws/service/eks/optimized-ami/%s/amazon-linux-2023/%s/%s/%s/image_id", kubernetes, v.arch, v.name, release)
}

// aliasQuery looks up all variants of an alias at once. Variants that are not published are left out; false if none is.
func (p *Provider) aliasQuery(ctx context.Context, alias, kubernetes string) (imageQuery, bool, error) {
	_, version, _ := strings.Cut(alias, "@")
	ids := make([]string, len(al2023Variants))
	group, ctx := errgroup.WithContext(ctx)
	for i, v := range al2023Variants {
		group.Go(func() (err error) {
			ids[i], err = p.parameter(ctx, al2023Path(kubernetes, version, v), version != awsv1.AliasVersionLatest)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return imageQuery{}, false, err
	}
	query := imageQuery{requirements: map[string][]v1.NodeSelectorRequirement{}}
	var published []string
	for i, v := range al2023Variants {
		if ids[i] != "" {
			published = append(published, ids[i])
			query.requirements[ids[i]] = v.requirements()
		}
	}
	query.filters = []ec2types.Filter{filter("image-id", published...)}
	return query, len(published) > 0, nil
}

// parameter reads a value, empty if there is none of that name; that answer is not kept.
func (p *Provider) parameter(ctx context.Context, name string, pinned bool) (string, error) {
	ttl := mutableTTL
	if pinned {
		ttl = pinnedTTL
	}
	p.mu.Lock()
	known, ok := p.parameters[name]
	p.mu.Unlock()
	if ok && time.Since(known.readAt) < ttl {
		return known.value, nil
	}
	out, err := call(ctx, "getting parameter "+name, p.ssm.GetParameter, &ssm.GetParameterInput{Name: &name})
	if hasCode(err, parameterNotFoundCodes) {
		return "", nil
	}
	if err != nil || out.Parameter == nil {
		return "", err
	}
	value := aws.ToString(out.Parameter.Value)
	p.mu.Lock()
	p.parameters[name] = parameter{value: value, readAt: time.Now()}
	p.mu.Unlock()
	return value, nil
}
