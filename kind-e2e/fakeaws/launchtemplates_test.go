// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

func TestCreateLaunchTemplate(t *testing.T) {
	t.Parallel()
	encoded := func(n int) *string {
		return aws.String(base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", n))))
	}
	cases := map[string]struct {
		name     string
		data     types.RequestLaunchTemplateData
		dryRun   bool
		wantCode string
	}{
		"as Karpenter names them": {name: "karpenter.k8s.aws/12345678901234567890"},
		"largest user data":       {name: "new", data: types.RequestLaunchTemplateData{UserData: encoded(16384)}},
		"too much user data":      {name: "new", data: types.RequestLaunchTemplateData{UserData: encoded(16385)}, wantCode: "InvalidUserData.Malformed"},
		"user data not encoded":   {name: "new", data: types.RequestLaunchTemplateData{UserData: aws.String("#!")}, wantCode: "InvalidUserData.Malformed"},
		"name taken":              {name: "taken", wantCode: "InvalidLaunchTemplateName.AlreadyExistsException"},
		"bad name":                {name: "a b c", wantCode: "InvalidLaunchTemplateName.MalformedException"},
		"unserved parameter":      {name: "new", data: types.RequestLaunchTemplateData{KeyName: aws.String("k")}, wantCode: "UnknownParameter"},
		"dry run":                 {name: "new", dryRun: true, wantCode: "DryRunOperation"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, client := start(t, Options{})
			makeTemplate(t, s, client, "taken")
			out, err := client.CreateLaunchTemplate(t.Context(), &ec2.CreateLaunchTemplateInput{LaunchTemplateName: &tc.name, LaunchTemplateData: &tc.data, DryRun: &tc.dryRun})
			if got := errorCode(err); got != tc.wantCode {
				t.Fatalf("got %q, want %q", got, tc.wantCode)
			}
			if err == nil && (*out.LaunchTemplate.LaunchTemplateName != tc.name || *out.LaunchTemplate.LatestVersionNumber != 1) {
				t.Errorf("got %+v", out.LaunchTemplate)
			}
		})
	}
}

func TestLaunchTemplateLife(t *testing.T) {
	t.Parallel()
	s, client := start(t, Options{})
	ctx := t.Context()
	input := &ec2.CreateLaunchTemplateInput{LaunchTemplateName: aws.String("one"), LaunchTemplateData: &types.RequestLaunchTemplateData{}, ClientToken: aws.String("t")}
	first, err := client.CreateLaunchTemplate(ctx, input)
	if err != nil {
		t.Fatal(err)
	}
	again, err := client.CreateLaunchTemplate(ctx, input)
	if err != nil || *again.LaunchTemplate.LaunchTemplateId != *first.LaunchTemplate.LaunchTemplateId {
		t.Errorf("the same token made another template: %v %v", again, err)
	}
	input.LaunchTemplateName = aws.String("two")
	if _, err := client.CreateLaunchTemplate(ctx, input); errorCode(err) != "IdempotentParameterMismatch" {
		t.Errorf("the same token with another name: %v", err)
	}
	makeTemplate(t, s, client, "tagged")

	listed, err := client.DescribeLaunchTemplates(ctx, &ec2.DescribeLaunchTemplatesInput{
		Filters: []types.Filter{filterOf("tag:eks:eks-cluster-name", "demo")}, MaxResults: aws.Int32(200),
	})
	if err != nil || len(listed.LaunchTemplates) != 1 || *listed.LaunchTemplates[0].LaunchTemplateName != "tagged" {
		t.Errorf("by tag: got %v, error %v", listed, err)
	}
	for want, in := range map[string]*ec2.DescribeLaunchTemplatesInput{
		"InvalidLaunchTemplateName.NotFoundException": {LaunchTemplateNames: []string{"one", "none"}},
		"InvalidLaunchTemplateId.NotFound":            {LaunchTemplateIds: []string{"lt-0"}},
	} {
		if _, err := client.DescribeLaunchTemplates(ctx, in); errorCode(err) != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if _, err := client.DeleteLaunchTemplate(ctx, &ec2.DeleteLaunchTemplateInput{LaunchTemplateId: first.LaunchTemplate.LaunchTemplateId}); err != nil {
		t.Error(err)
	}
	if _, err := client.DeleteLaunchTemplate(ctx, &ec2.DeleteLaunchTemplateInput{LaunchTemplateName: aws.String("one")}); errorCode(err) != "InvalidLaunchTemplateName.NotFoundException" {
		t.Errorf("deleting twice: %v", err)
	}
	if got := s.LaunchTemplates(); len(got) != 1 || got[0].Name != "tagged" || got[0].Tags["eks:eks-cluster-name"] != "demo" {
		t.Errorf("left: %+v", got)
	}
}
