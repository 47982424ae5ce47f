// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"context"
	"errors"
	"net"
	"strings"
	"time"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"github.com/aws/smithy-go"
	"github.com/awslabs/operatorpkg/status"
	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"
)

const (
	// resolveTTL is how long a resolved class is good without asking again: Karpenter's for subnets, whose free
	// addresses change. Groups and images are good for longer.
	resolveTTL = time.Minute
	imagesTTL  = 5 * time.Minute
	groupsTTL  = 5 * time.Minute
	profileTTL = 15 * time.Minute
)

// found is what one pass over a class's selectors gave.
type found struct {
	cluster   *clusterFacts
	catalogue *catalogue
	subnets   []subnet
	groups    []awsv1.SecurityGroup
	images    []image
	profile   string

	clusterErr, subnetsErr, groupsErr, imagesErr, profileErr error
	groupsAt, imagesAt, profileAt                            time.Time
}

// Resolve implements cloudprovider.Interface. A class that was fully resolved less than a minute ago is not looked up
// again.
func (p *Provider) Resolve(ctx context.Context, of *awsv1.EC2NodeClass) (*awsv1.EC2NodeClassStatus, error) {
	family, familyFault := familyOf(&of.Spec)
	f := &found{}
	p.mu.Lock()
	before := p.resolved(of)
	if before != nil && time.Since(before.resolvedAt) < resolveTTL {
		status := before.object.Status.DeepCopy()
		p.mu.Unlock()
		return p.withLaunchFault(of, status), nil
	}
	if before != nil {
		f.groupsAt, f.imagesAt = before.groupsAt, before.imagesAt
	}
	p.mu.Unlock()
	p.lookUp(ctx, f, of, familyFault == nil, before)
	next := &class{object: of.DeepCopy(), family: family, groupsAt: f.groupsAt, imagesAt: f.imagesAt}
	err := p.judge(next, f, before, familyFault)
	if ctx.Err() != nil { // half of an answer says nothing
		return nil, context.Cause(ctx)
	}
	p.publish(ctx, next, err == nil)
	return p.withLaunchFault(of, next.object.Status.DeepCopy()), err
}

// lookUp asks AWS for everything that is old at once.
func (p *Provider) lookUp(ctx context.Context, f *found, of *awsv1.EC2NodeClass, images bool, before *class) {
	var group errgroup.Group
	run := func(read func()) {
		group.Go(func() error {
			read()
			return nil
		})
	}
	run(func() {
		f.cluster, f.catalogue, f.clusterErr = p.refresh(ctx)
		if f.imagesErr = f.clusterErr; f.clusterErr != nil || !images {
			return
		}
		if before != nil && before.cluster.version == f.cluster.version && time.Since(f.imagesAt) < imagesTTL {
			f.images = before.images
			return
		}
		asked := time.Now()
		if f.images, f.imagesErr = p.readImages(ctx, &of.Spec, f.cluster); f.imagesErr == nil {
			f.imagesAt = asked
		}
	})
	run(func() { f.subnets, f.subnetsErr = p.readSubnets(ctx, of.Spec.SubnetSelectorTerms) })
	if before != nil && time.Since(f.groupsAt) < groupsTTL {
		f.groups = before.securityGroups()
	} else {
		run(func() {
			asked := time.Now()
			if f.groups, f.groupsErr = p.readSecurityGroups(ctx, of.Spec.SecurityGroupSelectorTerms); f.groupsErr == nil {
				f.groupsAt = asked
			}
		})
	}
	if before != nil && before.profile != "" && time.Since(before.profileAt) < profileTTL {
		f.profile, f.profileAt = before.profile, before.profileAt
	} else {
		f.profileAt = time.Now()
		run(func() { f.profile, f.profileErr = p.ensureProfile(ctx, of) })
	}
	_ = group.Wait() // each part keeps its own error
}

// refresh brings the cluster's facts and the catalogue up to date, for one class at a time.
func (p *Provider) refresh(ctx context.Context) (*clusterFacts, *catalogue, error) {
	if err := p.refreshing.enter(ctx); err != nil {
		return nil, nil, err
	}
	defer p.refreshing.leave()
	var cluster *clusterFacts
	var sold *catalogue
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		cluster, err = p.refreshCluster(ctx)
		return err
	})
	group.Go(func() (err error) {
		sold, err = p.refreshCatalogue(ctx)
		return err
	})
	if err := group.Wait(); err != nil {
		return nil, nil, err
	}
	return cluster, sold, nil
}

// judge turns what was found into conditions and fills next. Where AWS did not answer, what was known of the same
// generation stays in force; the error joins what a later try may cure.
func (p *Provider) judge(next *class, f *found, before *class, familyFault *fault) error {
	set := next.object.StatusConditions()
	var failures []error
	// part sets one condition and says whether the value that was found is to be used.
	part := func(condition string, err error, known, none bool, missing fault) bool {
		switch {
		case err != nil && known:
			failures = append(failures, err)
			set.SetTrue(condition)
			return false
		case err != nil:
			failures = append(failures, err)
			set.SetUnknownWithReason(condition, "ResolutionFailed", describe(err))
		case none:
			set.SetFalse(condition, missing.reason, missing.message)
		default:
			set.SetTrue(condition)
		}
		return true
	}
	known := before
	if known == nil {
		known = &class{}
	}
	spec := &next.object.Spec
	next.cluster, next.catalogue = f.cluster, f.catalogue
	if f.clusterErr != nil {
		next.cluster, next.catalogue = known.cluster, known.catalogue
	}
	next.subnets = known.subnets
	if part(awsv1.ConditionTypeSubnetsReady, f.subnetsErr, before != nil, len(f.subnets) == 0, fault{"SubnetsNotFound", missingSubnets(spec)}) {
		next.subnets = f.subnets
	}
	groups := known.securityGroups()
	if part(awsv1.ConditionTypeSecurityGroupsReady, f.groupsErr, before != nil, len(f.groups) == 0, fault{"SecurityGroupsNotFound", missingGroups(spec)}) {
		groups = f.groups
	}
	next.images = known.images
	if familyFault != nil {
		set.SetFalse(awsv1.ConditionTypeAMIsReady, familyFault.reason, familyFault.message)
		next.images = nil
	} else if part(awsv1.ConditionTypeAMIsReady, f.imagesErr, before != nil, len(f.images) == 0, fault{"AMINotFound", missingImages(spec, next.cluster)}) {
		next.images = f.images
	}
	next.profile, next.profileAt = known.profile, known.profileAt
	roleMissing := errors.Is(f.profileErr, errRoleNotFound)
	if roleMissing {
		f.profileErr = nil
	}
	if part(awsv1.ConditionTypeInstanceProfileReady, f.profileErr, before != nil, roleMissing, fault{"InstanceProfileNotFound", "spec.role: IAM knows no role " + roleName(spec.Role)}) {
		next.profile, next.profileAt = f.profile, f.profileAt
		if roleMissing {
			next.profile = ""
		}
	}
	set.SetTrue(awsv1.ConditionTypePlacementGroupReady)
	next.setStatus(groups)
	p.judgeWhole(next, before, set)
	return errors.Join(failures...)
}

// judgeWhole assembles the class and decides on the condition that needs all the others.
func (p *Provider) judgeWhole(next, before *class, set conditions) {
	spec := &next.object.Spec
	wrong := validate(spec, next.family)
	if wrong == nil && next.family != "" {
		next.shape = p.shapeOf(spec, next.family)
		wrong = p.checkUserData(next)
	}
	waiting, refused := dependencies(set)
	complete := len(waiting) == 0 && next.cluster != nil && next.catalogue != nil
	if wrong == nil && complete {
		if err := next.assemble(before); err != nil {
			wrong = &fault{invalidKubelet, "spec." + err.Error()}
		} else if next.bootable == 0 {
			wrong = &fault{"NoInstanceTypeForAMI", fitsNothing(next.images)}
		}
	}
	switch {
	case wrong != nil:
		set.SetFalse(awsv1.ConditionTypeValidationSucceeded, wrong.reason, wrong.message)
	case refused:
		set.SetFalse(awsv1.ConditionTypeValidationSucceeded, "DependenciesNotReady", "waiting for "+strings.Join(waiting, ", "))
	case !complete:
		set.SetUnknownWithReason(awsv1.ConditionTypeValidationSucceeded, "DependenciesNotReady", "waiting for "+strings.Join(waiting, ", "))
	default:
		set.SetTrue(awsv1.ConditionTypeValidationSucceeded)
	}
}

// dependencies returns what the class still lacks, and whether any of it is known to be missing.
func dependencies(set conditions) (waiting []string, refused bool) {
	for _, condition := range []string{
		awsv1.ConditionTypeSubnetsReady, awsv1.ConditionTypeSecurityGroupsReady, awsv1.ConditionTypeAMIsReady, awsv1.ConditionTypeInstanceProfileReady,
	} {
		if !set.IsTrue(condition) {
			waiting = append(waiting, condition)
			refused = refused || set.Get(condition).IsFalse()
		}
	}
	return waiting, refused
}

// conditions are the methods of Karpenter's condition set that are used.
type conditions interface {
	Get(condition string) *status.Condition
	IsTrue(...string) bool
	SetTrue(string) bool
	SetFalse(condition, reason, message string) bool
	SetUnknownWithReason(condition, reason, message string) bool
}

// publish puts the class in force if it can launch, and withdraws it if it is known that it cannot.
func (p *Provider) publish(ctx context.Context, next *class, complete bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	name := next.object.Name
	if now := p.classes[name]; now != nil && now.object.UID == next.object.UID && now.object.Generation > next.object.Generation {
		return // a newer generation was resolved meanwhile
	}
	if !next.object.StatusConditions().IsTrue(awsv1.ConditionTypeValidationSucceeded) {
		if p.classes[name] != nil {
			klog.FromContext(ctx).Info("NodeClass can launch no more", "EC2NodeClass", klog.KRef("", name))
		}
		delete(p.classes, name)
		return
	}
	if complete {
		next.resolvedAt = time.Now()
	}
	if now := p.catalogue; now != nil && next.catalogue != nil && now.file != next.catalogue.file {
		next = next.repriced(now) // the price file was replaced meanwhile
	}
	p.classes[name] = next
	p.sayUnpriced(klog.FromContext(ctx), next)
}

// describe is an error without what differs from try to try, so that a condition does not change with every one.
func describe(err error) string {
	call := "AWS"
	if operation, ok := errors.AsType[*smithy.OperationError](err); ok {
		call = operation.Service() + " " + operation.Operation()
	}
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return call + ": " + api.ErrorCode() + ": " + withoutSecrets(api.ErrorMessage())
	}
	if network, ok := errors.AsType[*net.OpError](err); ok {
		return call + ": no answer: " + network.Err.Error()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return call + ": no answer in time"
	}
	return call + ": " + err.Error()
}
