// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	pricingtypes "github.com/aws/aws-sdk-go-v2/service/pricing/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	ssmtypes "github.com/aws/aws-sdk-go-v2/service/ssm/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/google/go-cmp/cmp"
)

func TestImageAliases(t *testing.T) {
	t.Parallel()
	s, client := start(t, Options{})
	params := ssm.NewFromConfig(s.AWSConfig("AKTEST"))
	for _, version := range []string{"1.34", "1.35", "1.36", "1.37"} {
		for arch, variants := range map[string][]string{"x86_64": {"standard", "nvidia", "neuron"}, "arm64": {"standard", "nvidia"}} {
			for _, variant := range variants {
				folder := fmt.Sprintf("/aws/service/eks/optimized-ami/%s/amazon-linux-2023/%s/%s/", version, arch, variant)
				pinned := fmt.Sprintf("%samazon-eks-node-al2023-%s-%s-%s-v20260318/image_id", folder, arch, variant, version)
				old, latest := getImage(t, params, client, pinned), getImage(t, params, client, folder+"recommended/image_id")
				if string(old.Architecture) != arch || !strings.Contains(*old.Name, variant) || *old.CreationDate >= *latest.CreationDate {
					t.Errorf("%s: got %s of %s, recommended %s", pinned, *old.Name, *old.CreationDate, *latest.Name)
				}
			}
			bottlerocket := fmt.Sprintf("/aws/service/bottlerocket/aws-k8s-%s/%s/latest/image_id", version, arch)
			if got := getImage(t, params, client, bottlerocket); string(got.Architecture) != arch {
				t.Errorf("%s: architecture %s", bottlerocket, got.Architecture)
			}
		}
	}
	_, err := params.GetParameter(t.Context(), &ssm.GetParameterInput{Name: aws.String("/aws/service/eks/optimized-ami/1.20/nothing")})
	if _, ok := errors.AsType[*ssmtypes.ParameterNotFound](err); !ok {
		t.Errorf("an unknown parameter: %v", err)
	}
	_, err = client.DescribeImages(t.Context(), &ec2.DescribeImagesInput{ImageIds: []string{"ami-0"}})
	if got := errorCode(err); got != "InvalidAMIID.NotFound" {
		t.Errorf("an unknown image: %q", got)
	}
}

// getImage resolves as Karpenter does: the parameter, then the image by filter.
func getImage(t *testing.T, params *ssm.Client, client *ec2.Client, name string) ec2types.Image {
	t.Helper()
	found, err := params.GetParameter(t.Context(), &ssm.GetParameterInput{Name: &name})
	if err != nil {
		t.Fatal(err)
	}
	images, err := client.DescribeImages(t.Context(), &ec2.DescribeImagesInput{
		Filters:           []ec2types.Filter{filterOf("image-id", *found.Parameter.Value), filterOf("state", "available")},
		IncludeDeprecated: aws.Bool(true), MaxResults: aws.Int32(1000),
	})
	if err != nil || len(images.Images) != 1 {
		t.Fatalf("%s: got images %v, error %v", name, images, err)
	}
	return images.Images[0]
}

func TestImagesByNameAndAge(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, client := start(t, Options{})
		count := func(in *ec2.DescribeImagesInput) int {
			out, err := client.DescribeImages(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			return len(out.Images)
		}
		named := filterOf("name", "amazon-eks-node-al2023-*-standard-1.37-v20260318")
		if got := count(&ec2.DescribeImagesInput{Filters: []ec2types.Filter{named}, Owners: []string{"self", "amazon"}}); got != 2 {
			t.Errorf("by name: got %d images, want one per architecture", got)
		}
		if got := count(&ec2.DescribeImagesInput{Filters: []ec2types.Filter{named}, Owners: []string{"self"}}); got != 0 {
			t.Errorf("of our own: got %d images", got)
		}
		time.Sleep(30 * 365 * 24 * time.Hour) // bubbles start in the year 2000
		if got := count(&ec2.DescribeImagesInput{Filters: []ec2types.Filter{named}}); got != 0 {
			t.Errorf("deprecated: got %d images", got)
		}
		if got := count(&ec2.DescribeImagesInput{Filters: []ec2types.Filter{named}, IncludeDeprecated: aws.Bool(true)}); got != 2 {
			t.Errorf("with deprecated ones: got %d images, want 2", got)
		}
	})
}

func TestCluster(t *testing.T) {
	t.Parallel()
	s, _ := start(t, Options{Endpoint: "https://127.0.0.1:12345", CA: []byte("pem"), ClusterVersion: "1.36"})
	client := eks.NewFromConfig(s.AWSConfig("AKTEST"))
	out, err := client.DescribeCluster(t.Context(), &eks.DescribeClusterInput{Name: aws.String("demo")})
	if err != nil {
		t.Fatal(err)
	}
	got := []string{*out.Cluster.Endpoint, *out.Cluster.CertificateAuthority.Data, *out.Cluster.KubernetesNetworkConfig.ServiceIpv4Cidr, *out.Cluster.Version, *out.Cluster.Arn, string(out.Cluster.Status)}
	want := []string{"https://127.0.0.1:12345", "cGVt", "10.96.0.0/16", "1.36", "arn:aws:eks:us-east-1:111122223333:cluster/demo", "ACTIVE"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	_, err = client.DescribeCluster(t.Context(), &eks.DescribeClusterInput{Name: aws.String("other")})
	if _, ok := errors.AsType[*ekstypes.ResourceNotFoundException](err); !ok {
		t.Errorf("an unknown cluster: %v", err)
	}
}

func TestPriceList(t *testing.T) {
	t.Parallel()
	s, _ := start(t, Options{})
	client := pricing.NewFromConfig(s.AWSConfig("AKTEST"))
	prices := map[string]string{}
	for tenancy, family := range map[string]string{"Shared": "Compute Instance", "Dedicated": "Compute Instance (bare metal)"} {
		before := len(prices)
		var filters []pricingtypes.Filter
		for field, value := range map[string]string{
			"regionCode": "us-east-1", "serviceCode": "AmazonEC2", "preInstalledSw": "NA", "operatingSystem": "Linux", "capacitystatus": "Used",
			"marketoption": "OnDemand", "tenancy": tenancy, "productFamily": family,
		} {
			filters = append(filters, pricingtypes.Filter{Type: pricingtypes.FilterTypeTermMatch, Field: &field, Value: &value})
		}
		for pages := pricing.NewGetProductsPaginator(client, &pricing.GetProductsInput{
			ServiceCode: aws.String("AmazonEC2"), Filters: filters, MaxResults: aws.Int32(100),
		}); pages.HasMorePages(); {
			page, err := pages.NextPage(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range page.PriceList {
				name, usd := readProduct(t, text)
				prices[name] = usd
			}
		}
		if len(prices) == before {
			t.Errorf("no prices for %s", family)
		}
	}
	if len(prices) != 1345 || prices["m5.large"] != "0.0960000000" || prices["m5.metal"] != "4.6080000000" {
		t.Errorf("got %d prices, m5.large at %s, m5.metal at %s", len(prices), prices["m5.large"], prices["m5.metal"])
	}
}

func readProduct(t *testing.T, text string) (name, usd string) {
	t.Helper()
	var product struct {
		Product struct{ Attributes struct{ InstanceType string } }
		Terms   struct {
			OnDemand map[string]struct {
				PriceDimensions map[string]struct{ PricePerUnit map[string]string }
			}
		}
	}
	if err := json.Unmarshal([]byte(text), &product); err != nil {
		t.Fatal(err)
	}
	for _, term := range product.Terms.OnDemand {
		for _, dimension := range term.PriceDimensions {
			usd = dimension.PricePerUnit["USD"]
		}
	}
	return product.Product.Attributes.InstanceType, usd
}

func TestCallerIdentity(t *testing.T) {
	t.Parallel()
	s, _ := start(t, Options{})
	out, err := sts.NewFromConfig(s.AWSConfig("AKTEST")).GetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{})
	if err != nil || *out.Account != "111122223333" {
		t.Errorf("got %+v, error %v", out, err)
	}
}

func TestDecodeAuthorizationMessage(t *testing.T) {
	t.Parallel()
	s, client := start(t, Options{})
	s.SetFault(Rule{Action: "DescribeSubnets", Code: "UnauthorizedOperation"})
	_, err := client.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{})
	_, encoded, found := strings.Cut(err.Error(), "Encoded authorization failure message: ")
	if !found {
		t.Fatalf("no encoded message in %v", err)
	}
	decode := func(text string) (*sts.DecodeAuthorizationMessageOutput, error) {
		return sts.NewFromConfig(s.AWSConfig("AKTEST")).DecodeAuthorizationMessage(t.Context(), &sts.DecodeAuthorizationMessageInput{EncodedMessage: &text})
	}
	if out, err := decode(encoded); err != nil || !strings.Contains(*out.DecodedMessage, `"action":"ec2:DescribeSubnets"`) {
		t.Errorf("got %+v, %v", out, err)
	}
	if _, err := decode("nonsense"); errorCode(err) != "InvalidAuthorizationMessageException" {
		t.Errorf("nonsense: %v", err)
	}
}

func TestReservationsGroupsAndStatus(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, client := start(t, Options{})
		ctx := t.Context()
		reservation := s.SetCapacityReservation(CapacityReservation{InstanceType: "m5.large", Zone: "us-east-1a", Total: 1, Available: 1, Tags: map[string]string{"team": "a"}})
		group := s.SetPlacementGroup(PlacementGroup{Name: "parts", Strategy: "partition", Partitions: 3})
		input := &ec2.CreateLaunchTemplateInput{LaunchTemplateName: aws.String("reserved"), LaunchTemplateData: &ec2types.RequestLaunchTemplateData{
			ImageId: aws.String(s.imageNamed(t, amd64Image)),
			CapacityReservationSpecification: &ec2types.LaunchTemplateCapacityReservationSpecificationRequest{
				CapacityReservationPreference: "capacity-reservations-only",
				CapacityReservationTarget:     &ec2types.CapacityReservationTarget{CapacityReservationId: &reservation},
			},
		}}
		if _, err := client.CreateLaunchTemplate(ctx, input); err != nil {
			t.Fatal(err)
		}
		fleet, err := client.CreateFleet(ctx, fleetInput(s, "reserved", 2, onDemand, onlyM5Large, "us-east-1a"))
		if err != nil || len(launchedIDs(fleet)) != 1 || *fleet.Errors[0].ErrorCode != "ReservationCapacityExceeded" {
			t.Fatalf("two into a reservation of one: got %+v, error %v", fleet, err)
		}
		time.Sleep(2 * time.Second)
		crs, err := client.DescribeCapacityReservations(ctx, &ec2.DescribeCapacityReservationsInput{
			Filters: []ec2types.Filter{filterOf("state", "active"), filterOf("tag:team", "a")}, MaxResults: aws.Int32(1000),
		})
		if err != nil || len(crs.CapacityReservations) != 1 || *crs.CapacityReservations[0].AvailableInstanceCount != 0 {
			t.Errorf("got %+v, error %v", crs, err)
		}
		_, err = client.DescribeCapacityReservations(ctx, &ec2.DescribeCapacityReservationsInput{CapacityReservationIds: []string{"cr-0"}})
		if got := errorCode(err); got != "InvalidCapacityReservationId.NotFound" {
			t.Errorf("an unknown reservation: %q", got)
		}
		in, err := client.DescribeInstances(ctx, &ec2.DescribeInstancesInput{InstanceIds: launchedIDs(fleet)})
		if err != nil || aws.ToString(in.Reservations[0].Instances[0].CapacityReservationId) != reservation {
			t.Errorf("the instance is not in the reservation: %v, error %v", in, err)
		}
		groups, err := client.DescribePlacementGroups(ctx, &ec2.DescribePlacementGroupsInput{GroupIds: []string{group}, Filters: []ec2types.Filter{filterOf("state", "available")}})
		if err != nil || *groups.PlacementGroups[0].PartitionCount != 3 {
			t.Errorf("got %+v, error %v", groups, err)
		}
		_, err = client.DescribePlacementGroups(ctx, &ec2.DescribePlacementGroupsInput{GroupNames: []string{"none"}})
		if got := errorCode(err); got != "InvalidPlacementGroup.Unknown" {
			t.Errorf("an unknown group: %q", got)
		}
		for want, filter := range map[int]ec2types.Filter{
			0: filterOf("instance-status.status", "impaired"), 1: filterOf("system-status.status", "ok"),
		} {
			out, err := client.DescribeInstanceStatus(ctx, &ec2.DescribeInstanceStatusInput{Filters: []ec2types.Filter{filter}})
			if err != nil || len(out.InstanceStatuses) != want {
				t.Errorf("%s: got %+v, error %v", *filter.Name, out, err)
			}
		}
		if _, err := client.DescribeInstanceStatus(ctx, &ec2.DescribeInstanceStatusInput{Filters: []ec2types.Filter{filterOf("event.code", "instance-stop")}}); err != nil {
			t.Error(err)
		}
		if _, err := client.RebootInstances(ctx, &ec2.RebootInstancesInput{InstanceIds: launchedIDs(fleet)}); err != nil {
			t.Error(err)
		}
	})
}

func TestRunInstancesDryRun(t *testing.T) {
	t.Parallel()
	s, client := start(t, Options{})
	makeTemplate(t, s, client, "template")
	input := func(change func(*ec2.RunInstancesInput)) *ec2.RunInstancesInput {
		in := &ec2.RunInstancesInput{
			DryRun: aws.Bool(true), MinCount: aws.Int32(1), MaxCount: aws.Int32(1), InstanceType: "m5.large",
			LaunchTemplate:    &ec2types.LaunchTemplateSpecification{LaunchTemplateName: aws.String("template"), Version: aws.String("$Latest")},
			NetworkInterfaces: []ec2types.InstanceNetworkInterfaceSpecification{{DeviceIndex: aws.Int32(0), SubnetId: aws.String(s.subnets[1].id)}},
			TagSpecifications: []ec2types.TagSpecification{{ResourceType: ec2types.ResourceTypeNetworkInterface, Tags: []ec2types.Tag{{Key: aws.String("a"), Value: aws.String("b")}}}},
		}
		change(in)
		return in
	}
	cases := map[string]struct {
		change   func(*ec2.RunInstancesInput)
		wantCode string
	}{
		"valid":            {func(*ec2.RunInstancesInput) {}, "DryRunOperation"},
		"for real":         {func(in *ec2.RunInstancesInput) { in.DryRun = nil }, "UnsupportedOperation"},
		"missing template": {func(in *ec2.RunInstancesInput) { in.LaunchTemplate.LaunchTemplateName = aws.String("none") }, "InvalidLaunchTemplateName.NotFoundException"},
		"missing subnet":   {func(in *ec2.RunInstancesInput) { in.NetworkInterfaces[0].SubnetId = aws.String("subnet-0") }, "InvalidSubnetID.NotFound"},
		"missing type":     {func(in *ec2.RunInstancesInput) { in.InstanceType = "m5.huge" }, "InvalidParameterValue"},
	}
	for name, tc := range cases {
		_, err := client.RunInstances(t.Context(), input(tc.change))
		if got := errorCode(err); got != tc.wantCode {
			t.Errorf("%s: got %q, want %q", name, got, tc.wantCode)
		}
	}
}
