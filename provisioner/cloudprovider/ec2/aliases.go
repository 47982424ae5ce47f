// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"context"
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

// aliasQuery looks up all images of an alias at once. Those that are not published are left out; false if none is.
func (p *Provider) aliasQuery(ctx context.Context, text, kubernetes string) (imageQuery, bool, error) {
	of, err := parseAlias(text)
	if err != nil {
		return imageQuery{}, false, err
	}
	images := families[of.family].images(kubernetes, of.version)
	ids := make([]string, len(images))
	group, ctx := errgroup.WithContext(ctx)
	for i := range images {
		group.Go(func() (err error) {
			ids[i], err = p.parameter(ctx, images[i].path, of.version != awsv1.AliasVersionLatest)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return imageQuery{}, false, err
	}
	query := imageQuery{requirements: map[string][][]v1.NodeSelectorRequirement{}}
	var found []string
	for i, id := range ids {
		if id == "" {
			continue
		}
		found = append(found, id)
		query.requirements[id] = append(query.requirements[id], images[i].requirements...)
	}
	query.filters = []ec2types.Filter{filter("image-id", found...)}
	return query, len(found) > 0, nil
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
