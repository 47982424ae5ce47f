// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/fakeaws"
)

// The judge reads what the fake writes: an instance's whole life, with the real
// SDK and the real control API, in virtual time.
func TestReadsTheFake(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := fakeaws.New(fakeaws.Options{})
		defer server.Close()
		client := ec2.NewFromConfig(server.AWSConfig("AKTEST"))
		fake := newFakeClient("http://fakeaws.invalid/")
		fake.http = server.HTTPClient()
		began := time.Now()
		id := launch(t, client)
		time.Sleep(time.Hour)
		if _, err := client.TerminateInstances(t.Context(), &ec2.TerminateInstancesInput{InstanceIds: []string{id}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)

		s := NewState("jit-scheduler")
		readFake(t, fake, s)
		instance := s.instances[id]
		if !instance.Terminated() || instance.VCPUs != 2 || instance.Tags[tagNodeClaim] != "a" || instance.ClientToken != "token" ||
			instance.TerminatedAt.Sub(instance.LaunchedAt.Time).Round(time.Minute) != time.Hour {
			t.Errorf("instance is %+v", instance)
		}
		if peak := s.peakUSDPerHour(); peak != 0.096 || s.prices["m5.large"] != 0.096 {
			t.Errorf("peak is $%v/h at the catalogue's $%v/h, want 0.096", peak, s.prices["m5.large"])
		}
		if at := s.fleetTimes(&links{claimOfInstance: map[string]string{id: "a"}})["a"]; !at.Equal(began) {
			t.Errorf("CreateFleet arrived at %v, want %v", at, began)
		}
		if len(s.launchTemplates) != 1 || s.launchTemplates[0].Name != "demo" {
			t.Errorf("launch templates are %+v", s.launchTemplates)
		}
		last := s.calls[len(s.calls)-1]
		if last.Action != "TerminateInstances" || last.AccessKey != "AKTEST" || last.Status != 200 || !last.mutating() {
			t.Errorf("last call is %+v", last)
		}
		if since := s.callsSince(); since != last.Seq {
			t.Errorf("asks for calls since %d, want %d", since, last.Seq)
		}
	})
}

func readFake(t *testing.T, fake *fakeClient, s *State) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	prices, err := fake.prices(ctx)
	must(err)
	s.ObservePrices(prices)
	instances, err := fake.instances(ctx)
	must(err)
	s.ObserveInstances(instances)
	calls, err := fake.calls(ctx, 0)
	must(err)
	s.ObserveCalls(calls)
	templates, err := fake.launchTemplates(ctx)
	must(err)
	s.ObserveLaunchTemplates(templates)
}

// launch starts one m5.large for NodeClaim a.
func launch(t *testing.T, client *ec2.Client) string {
	t.Helper()
	ctx := t.Context()
	images, err := client.DescribeImages(ctx, &ec2.DescribeImagesInput{
		Filters: []types.Filter{{Name: aws.String("architecture"), Values: []string{"x86_64"}}},
	})
	if err != nil || len(images.Images) == 0 {
		t.Fatalf("images are %v, %v", images, err)
	}
	subnets, err := client.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{})
	if err != nil || len(subnets.Subnets) == 0 {
		t.Fatalf("subnets are %v, %v", subnets, err)
	}
	if _, err := client.CreateLaunchTemplate(ctx, &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: aws.String("demo"),
		LaunchTemplateData: &types.RequestLaunchTemplateData{ImageId: images.Images[0].ImageId},
	}); err != nil {
		t.Fatal(err)
	}
	fleet, err := client.CreateFleet(ctx, &ec2.CreateFleetInput{
		Type: types.FleetTypeInstant, ClientToken: aws.String("token"),
		LaunchTemplateConfigs: []types.FleetLaunchTemplateConfigRequest{{
			LaunchTemplateSpecification: &types.FleetLaunchTemplateSpecificationRequest{
				LaunchTemplateName: aws.String("demo"), Version: aws.String("$Latest"),
			},
			Overrides: []types.FleetLaunchTemplateOverridesRequest{{
				InstanceType: types.InstanceTypeM5Large, SubnetId: subnets.Subnets[0].SubnetId,
			}},
		}},
		TargetCapacitySpecification: &types.TargetCapacitySpecificationRequest{
			TotalTargetCapacity: aws.Int32(1), DefaultTargetCapacityType: types.DefaultTargetCapacityTypeOnDemand,
		},
		TagSpecifications: []types.TagSpecification{{
			ResourceType: types.ResourceTypeInstance,
			Tags:         []types.Tag{{Key: aws.String("karpenter.sh/nodeclaim"), Value: aws.String("a")}},
		}},
	})
	if err != nil || len(fleet.Instances) != 1 {
		t.Fatalf("fleet is %+v, %v", fleet, err)
	}
	return fleet.Instances[0].InstanceIds[0]
}
