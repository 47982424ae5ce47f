// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
)

func TestInstanceProfiles(t *testing.T) {
	t.Parallel()
	s, _ := start(t, Options{Roles: []string{"KarpenterNodeRole-demo"}})
	client := iam.NewFromConfig(s.AWSConfig("AKTEST"))
	ctx, name := t.Context(), aws.String("demo_1")
	steps := []struct {
		what     string
		call     func() error
		wantCode string
	}{
		{"get a missing one", func() error {
			_, err := client.GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: name})
			return err
		}, "NoSuchEntity"},
		{"create", func() error {
			_, err := client.CreateInstanceProfile(ctx, &iam.CreateInstanceProfileInput{
				InstanceProfileName: name, Path: aws.String("/karpenter/us-east-1/demo/uid/"), Tags: []iamtypes.Tag{{Key: aws.String("k"), Value: aws.String("v")}},
			})
			return err
		}, ""},
		{"create again", func() error {
			_, err := client.CreateInstanceProfile(ctx, &iam.CreateInstanceProfileInput{InstanceProfileName: name})
			return err
		}, "EntityAlreadyExists"},
		{"add an unknown role", addRole(t, client, name, "nobody"), "NoSuchEntity"},
		{"add the role", addRole(t, client, name, "KarpenterNodeRole-demo"), ""},
		{"add a second role", addRole(t, client, name, "KarpenterNodeRole-demo"), "LimitExceeded"},
		{"delete with a role", func() error {
			_, err := client.DeleteInstanceProfile(ctx, &iam.DeleteInstanceProfileInput{InstanceProfileName: name})
			return err
		}, "DeleteConflict"},
		{"tag", func() error {
			_, err := client.TagInstanceProfile(ctx, &iam.TagInstanceProfileInput{InstanceProfileName: name, Tags: []iamtypes.Tag{{Key: aws.String("k2"), Value: aws.String("v2")}}})
			return err
		}, ""},
	}
	for _, step := range steps {
		if got := errorCode(step.call()); got != step.wantCode {
			t.Errorf("%s: got %q, want %q", step.what, got, step.wantCode)
		}
	}
	listed, err := client.ListInstanceProfiles(ctx, &iam.ListInstanceProfilesInput{PathPrefix: aws.String("/karpenter/us-east-1/demo/")})
	if err != nil || len(listed.InstanceProfiles) != 1 || listed.IsTruncated {
		t.Fatalf("list: got %+v, error %v", listed, err)
	}
	profile := listed.InstanceProfiles[0]
	if *profile.Roles[0].RoleName != "KarpenterNodeRole-demo" || len(profile.Tags) != 2 || profile.CreateDate == nil || *profile.Path != "/karpenter/us-east-1/demo/uid/" {
		t.Errorf("got %+v", profile)
	}
	if _, err := client.RemoveRoleFromInstanceProfile(ctx, &iam.RemoveRoleFromInstanceProfileInput{InstanceProfileName: name, RoleName: aws.String("KarpenterNodeRole-demo")}); err != nil {
		t.Error(err)
	}
	if _, err := client.DeleteInstanceProfile(ctx, &iam.DeleteInstanceProfileInput{InstanceProfileName: name}); err != nil {
		t.Error(err)
	}
	if role, err := client.GetRole(ctx, &iam.GetRoleInput{RoleName: aws.String("KarpenterNodeRole-demo")}); err != nil || *role.Role.RoleName != "KarpenterNodeRole-demo" {
		t.Errorf("role: %v, %v", role, err)
	}
}

func addRole(t *testing.T, client *iam.Client, profile *string, role string) func() error {
	return func() error {
		_, err := client.AddRoleToInstanceProfile(t.Context(), &iam.AddRoleToInstanceProfileInput{InstanceProfileName: profile, RoleName: &role})
		return err
	}
}
