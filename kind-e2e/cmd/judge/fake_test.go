// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/fakeaws"
	"github.com/jit-scheduler/jit-scheduler/kind-e2e/judge"
)

// The judge reads what the real fake writes: the package itself must not know it.
func TestJudgesTheFake(t *testing.T) {
	t.Parallel()
	settings := fakeaws.DefaultSettings()
	settings.PendingDelay = metav1.Duration{Duration: time.Millisecond}
	settings.TerminateDelay = metav1.Duration{Duration: time.Millisecond}
	server := fakeaws.New(fakeaws.Options{Settings: &settings})
	t.Cleanup(server.Close)
	endpoint := httptest.NewServer(server)
	t.Cleanup(endpoint.Close)
	client := ec2.NewFromConfig(server.AWSConfig("AKTEST"))
	kept, gone := launch(t, client, "a"), launch(t, client, "b")
	time.Sleep(50 * time.Millisecond)
	if _, err := client.TerminateInstances(t.Context(), &ec2.TerminateInstancesInput{InstanceIds: []string{gone}}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond)

	var stdout bytes.Buffer
	passed, err := run(t.Context(), []string{
		"--kubeconfig=" + apiServer(t), "--fake-url=" + endpoint.URL, "--duration=10ms", "--json", "--scheduler-name=other",
		"--want-nothing-left", "--allow-swept", "--replica=a=AKTEST", "--replica=b=AKB",
	}, &stdout, io.Discard)
	if err != nil || passed {
		t.Fatalf("passed is %t, error is %v; want violations", passed, err)
	}
	var report struct {
		Violations []judge.Violation
		Figures    struct {
			Instances       int
			InstanceTypes   map[string]int
			Calls           map[string]int
			PeakUSDPerHour  float64
			USDPerHourAtEnd float64
			PeakVCPUs       float64
		}
	}
	if err := json.Unmarshal(stdout.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, v := range report.Violations {
		found[v.Invariant+" "+v.Subject] = v.Message
	}
	want := map[string]string{
		"one-instance-per-claim " + kept: "is tagged for NodeClaim a, which never existed",
		"leftovers " + kept:              "instance is left: m5.large, running",
		"leftovers demo-a":               "launch template is left",
		"leftovers demo-b":               "launch template is left",
		"instance-tags " + kept:          "lacks the tags eks:eks-cluster-name, karpenter.k8s.aws/ec2nodeclass, karpenter.sh/nodepool, kubernetes.io/cluster/…=owned",
		"instance-tags " + gone:          "lacks the tags eks:eks-cluster-name, karpenter.k8s.aws/ec2nodeclass, karpenter.sh/nodepool, kubernetes.io/cluster/…=owned",
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
	f := report.Figures
	if f.Instances != 2 || f.InstanceTypes["m5.large"] != 2 || f.PeakVCPUs != 4 ||
		math.Abs(f.PeakUSDPerHour-0.192) > 1e-9 || math.Abs(f.USDPerHourAtEnd-0.096) > 1e-9 ||
		f.Calls["CreateFleet"] != 2 || f.Calls["TerminateInstances"] != 1 {
		t.Errorf("figures are %+v", f)
	}
}

// launch starts one m5.large for the NodeClaim, from a launch template of its own.
func launch(t *testing.T, client *ec2.Client, claim string) (id string) {
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
	template := aws.String("demo-" + claim)
	if _, err := client.CreateLaunchTemplate(ctx, &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: template,
		LaunchTemplateData: &types.RequestLaunchTemplateData{ImageId: images.Images[0].ImageId},
	}); err != nil {
		t.Fatal(err)
	}
	fleet, err := client.CreateFleet(ctx, &ec2.CreateFleetInput{
		Type: types.FleetTypeInstant,
		LaunchTemplateConfigs: []types.FleetLaunchTemplateConfigRequest{{
			LaunchTemplateSpecification: &types.FleetLaunchTemplateSpecificationRequest{
				LaunchTemplateName: template, Version: aws.String("$Latest"),
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
			Tags:         []types.Tag{{Key: aws.String("karpenter.sh/nodeclaim"), Value: aws.String(claim)}},
		}},
	})
	if err != nil || len(fleet.Instances) != 1 {
		t.Fatalf("fleet is %+v, %v", fleet, err)
	}
	return fleet.Instances[0].InstanceIds[0]
}
