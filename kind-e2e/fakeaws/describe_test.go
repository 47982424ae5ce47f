// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"
)

func launchOne(t *testing.T, s *Server, client *ec2.Client, template string) string {
	t.Helper()
	out, err := client.CreateFleet(t.Context(), fleetInput(s, template, 1, onDemand, onlyM5Large))
	if err != nil {
		t.Fatal(err)
	}
	return launchedIDs(out)[0]
}

func filterOf(name string, values ...string) types.Filter {
	return types.Filter{Name: &name, Values: values}
}

func TestDescribeLag(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		settings := DefaultSettings()
		settings.DescribeLag, settings.LaunchTemplateLag = seconds(10), seconds(2)
		s, client := start(t, Options{Settings: &settings})
		makeTemplate(t, s, client, "template")
		_, err := client.CreateFleet(t.Context(), fleetInput(s, "template", 1, onDemand, onlyM5Large))
		if got := errorCode(err); got != "InvalidLaunchTemplateName.NotFoundException" {
			t.Errorf("fleet with a template that EC2 does not see yet: got %q", got)
		}
		time.Sleep(2 * time.Second)
		id := launchOne(t, s, client, "template")

		look := func() (byID, tagging string, listed int) {
			_, err := client.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{InstanceIds: []string{id}})
			byID = errorCode(err)
			_, err = client.CreateTags(t.Context(), &ec2.CreateTagsInput{Resources: []string{id}, Tags: []types.Tag{{Key: aws.String("a"), Value: aws.String("b")}}})
			tagging = errorCode(err)
			out, err := client.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{Filters: []types.Filter{filterOf("tag-key", "karpenter.sh/nodepool")}})
			if err != nil {
				t.Fatal(err)
			}
			return byID, tagging, len(out.Reservations)
		}
		time.Sleep(9 * time.Second)
		if byID, tagging, listed := look(); byID != "InvalidInstanceID.NotFound" || tagging != byID || listed != 0 {
			t.Errorf("within the lag: by id %q, tagging %q, %d listed", byID, tagging, listed)
		}
		time.Sleep(time.Second)
		if byID, tagging, listed := look(); byID != "" || tagging != "" || listed != 1 {
			t.Errorf("after the lag: by id %q, tagging %q, %d listed", byID, tagging, listed)
		}
	})
}

func TestDescribeInstancesFilters(t *testing.T) {
	t.Parallel()
	s, client := start(t, Options{})
	makeTemplate(t, s, client, "template")
	for range 7 {
		launchOne(t, s, client, "template")
	}
	id := s.Instances()[2].ID
	if _, err := client.CreateTags(t.Context(), &ec2.CreateTagsInput{Resources: []string{id}, Tags: []types.Tag{{Key: aws.String("Name"), Value: aws.String("third")}}}); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		input    ec2.DescribeInstancesInput
		want     int
		wantCode string
	}{
		"all":                   {want: 7},
		"by tag":                {input: ec2.DescribeInstancesInput{Filters: []types.Filter{filterOf("tag:Name", "third")}}, want: 1},
		"values are ORed":       {input: ec2.DescribeInstancesInput{Filters: []types.Filter{filterOf("tag:Name", "first", "third")}}, want: 1},
		"filters are ANDed":     {input: ec2.DescribeInstancesInput{Filters: []types.Filter{filterOf("tag-key", "karpenter.sh/nodepool"), filterOf("tag-key", "Name")}}, want: 1},
		"wildcards":             {input: ec2.DescribeInstancesInput{Filters: []types.Filter{filterOf("tag:Name", "t?i*")}}, want: 1},
		"a dot is no wildcard":  {input: ec2.DescribeInstancesInput{Filters: []types.Filter{filterOf("tag:Name", "thi.d")}}},
		"state":                 {input: ec2.DescribeInstancesInput{Filters: []types.Filter{filterOf("instance-state-name", "stopped")}}},
		"known but filtered":    {input: ec2.DescribeInstancesInput{InstanceIds: []string{id}, Filters: []types.Filter{filterOf("instance-state-name", "stopped")}}},
		"unknown filter":        {input: ec2.DescribeInstancesInput{Filters: []types.Filter{filterOf("colour", "red")}}, wantCode: "InvalidParameterValue"},
		"unknown id":            {input: ec2.DescribeInstancesInput{InstanceIds: []string{id, "i-00000000000000000"}}, wantCode: "InvalidInstanceID.NotFound"},
		"malformed id":          {input: ec2.DescribeInstancesInput{InstanceIds: []string{"i-1"}}, wantCode: "InvalidInstanceID.Malformed"},
		"ids and a page size":   {input: ec2.DescribeInstancesInput{InstanceIds: []string{id}, MaxResults: aws.Int32(10)}, wantCode: "InvalidParameterCombination"},
		"bad token":             {input: ec2.DescribeInstancesInput{NextToken: aws.String("?")}, wantCode: "InvalidNextToken"},
		"page size too small":   {input: ec2.DescribeInstancesInput{MaxResults: aws.Int32(1)}, wantCode: "InvalidParameterValue"},
		"dry run":               {input: ec2.DescribeInstancesInput{DryRun: aws.Bool(true)}, wantCode: "DryRunOperation"},
		"one page of the whole": {input: ec2.DescribeInstancesInput{MaxResults: aws.Int32(5)}, want: 5},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			out, err := client.DescribeInstances(t.Context(), &tc.input)
			if got := errorCode(err); got != tc.wantCode {
				t.Fatalf("got error %q, want %q", got, tc.wantCode)
			}
			if err == nil && len(out.Reservations) != tc.want {
				t.Errorf("got %d instances, want %d", len(out.Reservations), tc.want)
			}
		})
	}
	var ids []string
	for pages := ec2.NewDescribeInstancesPaginator(client, &ec2.DescribeInstancesInput{MaxResults: aws.Int32(5)}); pages.HasMorePages(); {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, reservation := range page.Reservations {
			ids = append(ids, *reservation.Instances[0].InstanceId)
		}
	}
	if slices.Sort(ids); len(ids) != 7 || len(slices.Compact(ids)) != 7 {
		t.Errorf("paging gave %d instances, want each of 7 once", len(ids))
	}
}

func TestCatalogueOverTheWire(t *testing.T) {
	t.Parallel()
	_, client := start(t, Options{})
	input := &ec2.DescribeInstanceTypesInput{
		Filters:    []types.Filter{filterOf("supported-virtualization-type", "hvm"), filterOf("processor-info.supported-architecture", "x86_64", "arm64")},
		MaxResults: aws.Int32(100),
	}
	found := map[types.InstanceType]types.InstanceTypeInfo{}
	for pages := ec2.NewDescribeInstanceTypesPaginator(client, input); pages.HasMorePages(); {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, info := range page.InstanceTypes {
			found[info.InstanceType] = info
		}
	}
	if len(found) != 1345 {
		t.Errorf("got %d types, want 1345", len(found))
	}
	m5, p4d := found["m5.large"], found["p4d.24xlarge"]
	if *m5.VCpuInfo.DefaultVCpus != 2 || *m5.MemoryInfo.SizeInMiB != 8192 || m5.ProcessorInfo.SupportedArchitectures[0] != "x86_64" ||
		*m5.ProcessorInfo.Manufacturer != "Intel" || *m5.ProcessorInfo.SustainedClockSpeedInGhz != 3.1 || m5.Hypervisor != "nitro" ||
		*m5.EbsInfo.EbsOptimizedInfo.MaximumBandwidthInMbps != 4750 || *m5.NetworkInfo.Ipv4AddressesPerInterface != 10 {
		t.Errorf("m5.large: %+v", m5)
	}
	if len(m5.SupportedUsageClasses) != 2 || m5.GpuInfo != nil || m5.NeuronInfo != nil || m5.InferenceAcceleratorInfo != nil || m5.InstanceStorageInfo != nil {
		t.Errorf("m5.large has what it has not: %+v", m5)
	}
	cards := p4d.NetworkInfo.NetworkCards
	if len(cards) != 4 || *cards[0].MaximumNetworkInterfaces != 15 || *p4d.GpuInfo.Gpus[0].Manufacturer != "NVIDIA" || *p4d.GpuInfo.Gpus[0].Count != 8 ||
		*p4d.NetworkInfo.EfaInfo.MaximumEfaInterfaces != 4 || *p4d.InstanceStorageInfo.TotalSizeInGB != 8000 {
		t.Errorf("p4d.24xlarge: %+v", p4d)
	}
	if inf1 := found["inf1.xlarge"]; *inf1.InferenceAcceleratorInfo.Accelerators[0].Count != 1 || *inf1.NeuronInfo.NeuronDevices[0].CoreInfo.Count != 4 {
		t.Errorf("inf1.xlarge: %+v", inf1)
	}
	_, err := client.DescribeInstanceTypes(t.Context(), &ec2.DescribeInstanceTypesInput{DryRun: aws.Bool(true)})
	if got := errorCode(err); got != "DryRunOperation" {
		t.Errorf("start-up probe: got %q", got)
	}
}

func TestOfferingsAndSpotPrices(t *testing.T) {
	t.Parallel()
	settings := DefaultSettings()
	settings.UnofferedZones = map[string][]string{"m5.large": {"us-east-1c"}}
	_, client := start(t, Options{Settings: &settings})
	zones := map[types.InstanceType][]string{}
	for pages := ec2.NewDescribeInstanceTypeOfferingsPaginator(client, &ec2.DescribeInstanceTypeOfferingsInput{
		LocationType: types.LocationTypeAvailabilityZone, MaxResults: aws.Int32(1000),
	}); pages.HasMorePages(); {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, offering := range page.InstanceTypeOfferings {
			zones[offering.InstanceType] = append(zones[offering.InstanceType], *offering.Location)
		}
	}
	if diff := cmp.Diff([]string{"us-east-1a", "us-east-1b"}, zones["m5.large"]); diff != "" || len(zones["m5.xlarge"]) != 3 {
		t.Errorf("zones of m5.large (-want +got):\n%s", diff)
	}
	prices := map[string]string{}
	for pages := ec2.NewDescribeSpotPriceHistoryPaginator(client, &ec2.DescribeSpotPriceHistoryInput{
		ProductDescriptions: []string{"Linux/UNIX", "Linux/UNIX (Amazon VPC)"}, StartTime: aws.Time(time.Now()), MaxResults: aws.Int32(2000),
	}); pages.HasMorePages(); {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, price := range page.SpotPriceHistory {
			if price.Timestamp == nil {
				t.Fatalf("%s has no timestamp", price.InstanceType)
			}
			prices[string(price.InstanceType)+"/"+*price.AvailabilityZone] = *price.SpotPrice
		}
	}
	if len(prices) != 3*1345-1 || prices["m5.large/us-east-1a"] == prices["m5.large/us-east-1b"] {
		t.Errorf("got %d spot prices, m5.large at %s and %s", len(prices), prices["m5.large/us-east-1a"], prices["m5.large/us-east-1b"])
	}
}

func TestNetworkDiscovery(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, client := start(t, Options{})
		discovery := []types.Filter{filterOf("tag:karpenter.sh/discovery", "demo")}
		groups, err := client.DescribeSecurityGroups(t.Context(), &ec2.DescribeSecurityGroupsInput{Filters: discovery, MaxResults: aws.Int32(500)})
		if err != nil || len(groups.SecurityGroups) != 1 {
			t.Fatalf("got groups %v, error %v", groups, err)
		}
		free := func() map[string]int32 {
			out, err := client.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{Filters: discovery, MaxResults: aws.Int32(500)})
			if err != nil {
				t.Fatal(err)
			}
			counts := map[string]int32{}
			for _, sn := range out.Subnets {
				counts[*sn.AvailabilityZone+" "+*sn.AvailabilityZoneId] = *sn.AvailableIpAddressCount
			}
			return counts
		}
		if diff := cmp.Diff(map[string]int32{"us-east-1a use1-az1": 4091, "us-east-1b use1-az2": 4091, "us-east-1c use1-az3": 4091}, free()); diff != "" {
			t.Errorf("free addresses (-want +got):\n%s", diff)
		}
		makeTemplate(t, s, client, "template")
		id := launchOne(t, s, client, "template")
		if got := free()["us-east-1a use1-az1"]; got != 4090 {
			t.Errorf("after a launch: %d free addresses, want 4090", got)
		}
		if _, err := client.TerminateInstances(t.Context(), &ec2.TerminateInstancesInput{InstanceIds: []string{id}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if got := free()["us-east-1a use1-az1"]; got != 4091 {
			t.Errorf("after termination: %d free addresses, want 4091", got)
		}
	})
}

func TestInstanceRecord(t *testing.T) {
	t.Parallel()
	s, client := start(t, Options{})
	makeTemplate(t, s, client, "template")
	id := launchOne(t, s, client, "template")
	out, err := client.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{InstanceIds: []string{id}})
	if err != nil {
		t.Fatal(err)
	}
	in := out.Reservations[0].Instances[0]
	tags := map[string]string{}
	for _, tag := range in.Tags {
		if !strings.HasPrefix(*tag.Key, "aws:") {
			tags[*tag.Key] = *tag.Value
		}
	}
	got := map[string]string{
		"zone": *in.Placement.AvailabilityZone, "zoneID": *in.Placement.AvailabilityZoneId, "tenancy": string(in.Placement.Tenancy), "group": *in.SecurityGroups[0].GroupId,
		"interfaceGroup": *in.NetworkInterfaces[0].Groups[0].GroupId, "interfaceType": *in.NetworkInterfaces[0].InterfaceType, "dns": *in.PrivateDnsName,
		"subnet": *in.SubnetId, "image": *in.ImageId, "arch": string(in.Architecture), "reservations": string(in.CapacityReservationSpecification.CapacityReservationPreference),
		"nodepool": tags["karpenter.sh/nodepool"],
	}
	want := map[string]string{
		"zone": "us-east-1a", "zoneID": "use1-az1", "tenancy": "default", "group": s.groups[0].id, "interfaceGroup": s.groups[0].id, "interfaceType": "interface",
		"dns": "ip-10-0-0-4.ec2.internal", "subnet": s.subnets[0].id, "image": s.imageNamed(t, amd64Image), "arch": "x86_64", "reservations": "open", "nodepool": "default",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if in.SpotInstanceRequestId != nil || in.InstanceLifecycle != "" || in.LaunchTime == nil {
		t.Errorf("an on-demand instance: %+v", in)
	}
}

func TestTagLimit(t *testing.T) {
	t.Parallel()
	s, client := start(t, Options{})
	makeTemplate(t, s, client, "template")
	id := launchOne(t, s, client, "template")
	tags := func(n int) []types.Tag {
		var list []types.Tag
		for i := range n {
			list = append(list, types.Tag{Key: aws.String("key-" + strings.Repeat("x", i)), Value: aws.String("")})
		}
		return list
	}
	for n, want := range map[int]string{49: "", 50: "TagLimitExceeded"} { // one tag came with the launch
		_, err := client.CreateTags(t.Context(), &ec2.CreateTagsInput{Resources: []string{id}, Tags: tags(n)})
		if got := errorCode(err); got != want {
			t.Errorf("%d tags: got %q, want %q", n, got, want)
		}
	}
}
