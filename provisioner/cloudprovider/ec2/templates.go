// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"
)

const (
	templatesPage = 200
	// parallelTemplates keeps a first launch with many pod limits within EC2's rate of mutating calls.
	parallelTemplates = 8
)

// template is what is known of a launch template in EC2.
type template struct {
	changing gate // held while it is created or deleted

	// Guarded by Provider.mu.
	exists   bool
	users    int // launches in flight
	lastUsed time.Time
}

// useTemplates makes sure that the templates exist and keeps them from being swept until the returned function is
// called. existed is true if EC2 said of one that it was there already: then it may take a moment to be visible.
func (p *Provider) useTemplates(ctx context.Context, specs []*templateSpec) (release func(), existed bool, err error) {
	known := make([]*template, len(specs))
	p.mu.Lock()
	for i, spec := range specs {
		if p.templates[spec.name] == nil {
			p.templates[spec.name] = &template{changing: newGate()}
		}
		known[i] = p.templates[spec.name]
		known[i].users++
		known[i].lastUsed = time.Now()
	}
	p.mu.Unlock()
	release = func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, t := range known {
			t.users--
			t.lastUsed = time.Now()
		}
	}
	found := make([]bool, len(specs))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelTemplates)
	for i, spec := range specs {
		group.Go(func() (err error) {
			found[i], err = p.ensureTemplate(ctx, known[i], spec)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		release()
		return nil, false, err
	}
	for _, was := range found {
		existed = existed || was
	}
	return release, existed, nil
}

// ensureTemplate creates the template unless it is known to exist. Its name vouches for its content, so "exists
// already" is as good as "created"; it is reported.
func (p *Provider) ensureTemplate(ctx context.Context, t *template, spec *templateSpec) (existed bool, err error) {
	if err := t.changing.enter(ctx); err != nil {
		return false, err
	}
	defer t.changing.leave()
	p.mu.Lock()
	exists := t.exists
	p.mu.Unlock()
	if exists {
		return false, nil
	}
	_, err = call(ctx, "creating launch template "+spec.name, p.ec2.CreateLaunchTemplate, &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: aws.String(spec.name), LaunchTemplateData: spec.data,
		TagSpecifications: []ec2types.TagSpecification{{ResourceType: ec2types.ResourceTypeLaunchTemplate, Tags: ec2Tags(spec.tags)}},
	})
	existed = hasCode(err, templateExistsCodes)
	if err != nil && !existed {
		return false, err
	}
	p.mu.Lock()
	t.exists = true
	p.mu.Unlock()
	return existed, nil
}

// missTemplates is told that EC2 does not have one of the templates.
func (p *Provider) missTemplates(specs []*templateSpec) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, spec := range specs {
		if t := p.templates[spec.name]; t != nil {
			t.exists = false
		}
	}
}

// Sweep implements cloudprovider.Interface. It deletes this cluster's templates that neither a launch in flight uses
// nor one of the last "unused" did; of templates from before a restart their age counts.
func (p *Provider) Sweep(ctx context.Context, unused time.Duration) error {
	return p.deleteTemplates(ctx, "", unused)
}

// Forget implements cloudprovider.Interface. The class's machines must be gone.
func (p *Provider) Forget(ctx context.Context, className string) error {
	p.mu.Lock()
	delete(p.classes, className)
	p.mu.Unlock()
	return errors.Join(p.deleteTemplates(ctx, className, 0), p.deleteProfiles(ctx, className))
}

// deleteTemplates deletes templates of the cluster (and class, if it is named) that were not used for long enough.
func (p *Provider) deleteTemplates(ctx context.Context, className string, unused time.Duration) error {
	filters := []ec2types.Filter{filter("tag:"+awsv1.EKSClusterNameTagKey, p.opts.ClusterName), filter("tag:"+clusterTagPrefix+p.opts.ClusterName, owned)}
	if className != "" {
		filters = append(filters, filter("tag:"+awsv1.NodeClassTagKey, className))
	}
	pages := ec2.NewDescribeLaunchTemplatesPaginator(p.ec2, &ec2.DescribeLaunchTemplatesInput{Filters: filters, MaxResults: aws.Int32(templatesPage)})
	var failures []error
	for pages.HasMorePages() {
		page, err := nextPage(ctx, pages.NextPage)
		if err != nil {
			return fmt.Errorf("describing launch templates: %w", err)
		}
		for i := range page.LaunchTemplates {
			failures = append(failures, p.deleteTemplate(ctx, &page.LaunchTemplates[i], unused))
		}
	}
	return errors.Join(failures...)
}

func (p *Provider) deleteTemplate(ctx context.Context, found *ec2types.LaunchTemplate, unused time.Duration) error {
	name := aws.ToString(found.LaunchTemplateName)
	if !strings.HasPrefix(name, awsv1.LaunchTemplateNamePrefix+"/") {
		return nil
	}
	p.mu.Lock()
	t := p.templates[name]
	if t == nil {
		t = &template{changing: newGate(), lastUsed: aws.ToTime(found.CreateTime)}
		p.templates[name] = t
	}
	p.mu.Unlock()
	if !t.changing.tryEnter() {
		return nil // a launch is creating it
	}
	defer t.changing.leave()
	p.mu.Lock()
	used := t.users > 0 || time.Since(t.lastUsed) < unused
	if !used {
		t.exists = false // whoever needs it from now on waits at the gate, and creates it
	}
	p.mu.Unlock()
	if used {
		return nil
	}
	_, err := call(ctx, "deleting launch template "+name, p.ec2.DeleteLaunchTemplate, &ec2.DeleteLaunchTemplateInput{LaunchTemplateId: found.LaunchTemplateId})
	if err != nil && !hasCode(err, templateNotFoundCodes) {
		return err
	}
	klog.FromContext(ctx).V(2).Info("Deleted launch template", "launchTemplate", name)
	p.mu.Lock()
	defer p.mu.Unlock()
	if t.users == 0 && p.templates[name] == t {
		delete(p.templates, name)
	}
	return nil
}
