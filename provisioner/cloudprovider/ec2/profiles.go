// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
)

// errRoleNotFound says that spec.role names no role.
var errRoleNotFound = errors.New("role not found")

// profilePath is the folder of this cluster's instance profiles; each class has one below it.
func (p *Provider) profilePath() string {
	return fmt.Sprintf("/karpenter/%s/%s/", p.region, p.opts.ClusterName)
}

// profileName is the same for every try, so that a lost reply or a lost status makes no second profile. Another role
// gives another name: machines that run keep the profile they have.
func (p *Provider) profileName(class *awsv1.EC2NodeClass) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{p.region, class.Name, string(class.UID), roleName(class.Spec.Role)}, "\x00")))
	return fmt.Sprintf("%s_%d", p.opts.ClusterName, binary.BigEndian.Uint64(sum[:8]))
}

// roleName is a role's name without its path, which is how IAM answers.
func roleName(role string) string { return path.Base(role) }

// ensureProfile returns the instance profile to launch with. The one in the status is kept while it has the role.
func (p *Provider) ensureProfile(ctx context.Context, class *awsv1.EC2NodeClass) (string, error) {
	if class.Spec.InstanceProfile != nil {
		return *class.Spec.InstanceProfile, nil
	}
	name := p.profileName(class)
	if known := class.Status.InstanceProfile; known != "" && known != name {
		profile, err := p.getProfile(ctx, known)
		if err != nil {
			return "", err
		}
		if profile != nil && hasRole(profile, class.Spec.Role) {
			return known, nil
		}
	}
	profile, err := p.getProfile(ctx, name)
	if err != nil {
		return "", err
	}
	if profile == nil {
		if profile, err = p.createProfile(ctx, class, name); err != nil {
			return "", err
		}
	}
	if profile != nil && hasRole(profile, class.Spec.Role) {
		return name, nil
	}
	return name, p.addRole(ctx, class, name)
}

// getProfile returns nil if there is no such profile.
func (p *Provider) getProfile(ctx context.Context, name string) (*iamtypes.InstanceProfile, error) {
	out, err := call(ctx, "getting instance profile "+name, p.iam.GetInstanceProfile, &iam.GetInstanceProfileInput{InstanceProfileName: &name})
	if hasCode(err, profileNotFoundCodes) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return out.InstanceProfile, nil
}

// createProfile returns nil without error if another try has created it meanwhile.
func (p *Provider) createProfile(ctx context.Context, class *awsv1.EC2NodeClass, name string) (*iamtypes.InstanceProfile, error) {
	var tags []iamtypes.Tag
	all := class.InstanceProfileTags(p.opts.ClusterName, p.region)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		tags = append(tags, iamtypes.Tag{Key: aws.String(key), Value: aws.String(all[key])})
	}
	out, err := call(ctx, "creating instance profile "+name, p.iam.CreateInstanceProfile, &iam.CreateInstanceProfileInput{
		InstanceProfileName: &name, Path: aws.String(path.Join(p.profilePath(), string(class.UID)) + "/"), Tags: tags,
	})
	if hasCode(err, profileExistsCodes) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return out.InstanceProfile, nil
}

func (p *Provider) addRole(ctx context.Context, class *awsv1.EC2NodeClass, name string) error {
	role := roleName(class.Spec.Role)
	_, err := call(ctx, "adding the role to instance profile "+name, p.iam.AddRoleToInstanceProfile, &iam.AddRoleToInstanceProfileInput{
		InstanceProfileName: &name, RoleName: &role,
	})
	switch {
	case hasCode(err, roleLimitCodes): // it has a role: ours, added by a try whose reply was lost, or a person's
		profile, err := p.getProfile(ctx, name)
		if err == nil && (profile == nil || !hasRole(profile, role)) {
			err = fmt.Errorf("instance profile %s has another role than %s", name, role)
		}
		return err
	case hasCode(err, profileNotFoundCodes):
		return fmt.Errorf("%w: %s", errRoleNotFound, role)
	}
	return err
}

func hasRole(profile *iamtypes.InstanceProfile, role string) bool {
	return slices.ContainsFunc(profile.Roles, func(r iamtypes.Role) bool { return aws.ToString(r.RoleName) == roleName(role) })
}

// deleteProfiles deletes the profiles that were made for a class.
func (p *Provider) deleteProfiles(ctx context.Context, className string) error {
	prefix := p.profilePath()
	pages := iam.NewListInstanceProfilesPaginator(p.iam, &iam.ListInstanceProfilesInput{PathPrefix: &prefix})
	var failures []error
	for pages.HasMorePages() {
		page, err := nextPage(ctx, pages.NextPage)
		if err != nil {
			return fmt.Errorf("listing instance profiles: %w", err)
		}
		for i := range page.InstanceProfiles {
			failures = append(failures, p.deleteProfile(ctx, aws.ToString(page.InstanceProfiles[i].InstanceProfileName), className))
		}
	}
	return errors.Join(failures...)
}

// deleteProfile deletes the profile if its tags say that it is the class's; lists come without tags.
func (p *Provider) deleteProfile(ctx context.Context, name, className string) error {
	profile, err := p.getProfile(ctx, name)
	if err != nil || profile == nil {
		return err
	}
	tags := map[string]string{}
	for _, tag := range profile.Tags {
		tags[aws.ToString(tag.Key)] = aws.ToString(tag.Value)
	}
	if tags[awsv1.LabelNodeClass] != className || tags[awsv1.EKSClusterNameTagKey] != p.opts.ClusterName {
		return nil
	}
	for _, role := range profile.Roles {
		_, err := call(ctx, "removing the role from instance profile "+name, p.iam.RemoveRoleFromInstanceProfile, &iam.RemoveRoleFromInstanceProfileInput{
			InstanceProfileName: &name, RoleName: role.RoleName,
		})
		if err != nil && !hasCode(err, profileNotFoundCodes) {
			return err
		}
	}
	_, err = call(ctx, "deleting instance profile "+name, p.iam.DeleteInstanceProfile, &iam.DeleteInstanceProfileInput{InstanceProfileName: &name})
	if hasCode(err, profileNotFoundCodes) {
		return nil
	}
	return err
}
