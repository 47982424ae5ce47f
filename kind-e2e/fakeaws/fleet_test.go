// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

var mixedTypes = []types.InstanceType{types.InstanceTypeM5Large, types.InstanceTypeC5Large, types.InstanceTypeR5Large} // c5 is the cheapest

func TestFleetFulfilment(t *testing.T) {
	t.Parallel()
	small := []SubnetSpec{{Zone: "us-east-1a", CIDR: "10.0.0.0/28"}, {Zone: "us-east-1b", CIDR: "10.0.1.0/28"}} // 11 addresses each
	cases := map[string]struct {
		subnets      []SubnetSpec
		settings     func(*Settings)
		rules        []Rule
		capacityType types.DefaultTargetCapacityType
		target       int32
		instances    []types.InstanceType
		change       func(*ec2.CreateFleetInput)
		want         map[string]int // type/zone to instances
		wantErrors   []string       // code type/zone, in order
	}{
		"cheapest pool takes all": {
			target: 3, instances: mixedTypes, want: map[string]int{"c5.large/us-east-1a": 3},
		},
		"prioritized": {
			target: 1, instances: mixedTypes,
			change: func(in *ec2.CreateFleetInput) {
				in.OnDemandOptions.AllocationStrategy = types.FleetOnDemandAllocationStrategyPrioritized
				for i := range in.LaunchTemplateConfigs[0].Overrides {
					in.LaunchTemplateConfigs[0].Overrides[i].Priority = aws.Float64(float64(10 - i))
				}
			},
			want: map[string]int{"r5.large/us-east-1c": 1},
		},
		"subnets run out of addresses": {
			subnets: small, target: 30, instances: onlyM5Large,
			want:       map[string]int{"m5.large/us-east-1a": 11, "m5.large/us-east-1b": 11},
			wantErrors: []string{"InsufficientFreeAddressesInSubnet m5.large/us-east-1a", "InsufficientFreeAddressesInSubnet m5.large/us-east-1b"},
		},
		"pool capacity, the target is met elsewhere": {
			settings: func(s *Settings) { s.PoolCapacity = map[string]int{"m5.large/us-east-1a/on-demand": 2} },
			target:   5, instances: onlyM5Large,
			want:       map[string]int{"m5.large/us-east-1a": 2, "m5.large/us-east-1b": 3},
			wantErrors: []string{"InsufficientInstanceCapacity m5.large/us-east-1a"},
		},
		"partial": {
			settings: func(s *Settings) { s.VCPUQuota = map[string]int{onDemand: 6} },
			target:   5, instances: onlyM5Large, want: map[string]int{"m5.large/us-east-1a": 3},
			wantErrors: []string{"VcpuLimitExceeded m5.large/us-east-1a", "VcpuLimitExceeded m5.large/us-east-1b", "VcpuLimitExceeded m5.large/us-east-1c"},
		},
		"injected pool failures": {
			rules: []Rule{
				{Action: "CreateFleet", InstanceType: "c5.large", PerPool: true, Code: "InsufficientInstanceCapacity"},
				{Action: "CreateFleet", Zone: "us-east-1a", CapacityType: onDemand, PerPool: true, Code: "Unsupported"},
				{Action: "CreateFleet", CapacityType: spot, PerPool: true, Code: "MaxSpotInstanceCountExceeded"},
			},
			target: 1, instances: mixedTypes[:2], want: map[string]int{"m5.large/us-east-1b": 1},
			wantErrors: []string{
				"InsufficientInstanceCapacity c5.large/us-east-1a", "InsufficientInstanceCapacity c5.large/us-east-1b", "InsufficientInstanceCapacity c5.large/us-east-1c",
				"Unsupported m5.large/us-east-1a",
			},
		},
		"nothing at all": {
			rules:  []Rule{{Action: "CreateFleet", PerPool: true, Code: "InsufficientInstanceCapacity"}},
			target: 1, instances: onlyM5Large, want: map[string]int{},
			wantErrors: []string{"InsufficientInstanceCapacity m5.large/us-east-1a", "InsufficientInstanceCapacity m5.large/us-east-1b", "InsufficientInstanceCapacity m5.large/us-east-1c"},
		},
		"zone does not offer the type": {
			settings: func(s *Settings) { s.UnofferedZones = map[string][]string{"m5.large": {"us-east-1a"}} },
			target:   1, instances: onlyM5Large, want: map[string]int{"m5.large/us-east-1b": 1}, wantErrors: []string{"Unsupported m5.large/us-east-1a"},
		},
		"image of another architecture": {
			target: 1, instances: []types.InstanceType{types.InstanceTypeM6gLarge}, want: map[string]int{},
			wantErrors: []string{"InvalidParameterValue m6g.large/us-east-1a", "InvalidParameterValue m6g.large/us-east-1b", "InvalidParameterValue m6g.large/us-east-1c"},
		},
		"unknown subnet": {
			target: 1, instances: onlyM5Large,
			change: func(in *ec2.CreateFleetInput) {
				in.LaunchTemplateConfigs[0].Overrides = []types.FleetLaunchTemplateOverridesRequest{{InstanceType: "m5.large", SubnetId: aws.String("subnet-0"), AvailabilityZone: aws.String("us-east-1a")}}
			},
			want: map[string]int{}, wantErrors: []string{"InvalidSubnetID.NotFound m5.large/us-east-1a"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, client := start(t, Options{Subnets: tc.subnets})
				if tc.settings != nil {
					settings := s.Settings()
					tc.settings(&settings)
					s.SetSettings(settings)
				}
				for _, rule := range tc.rules {
					s.SetFault(rule)
				}
				makeTemplate(t, s, client, "template")
				input := fleetInput(s, "template", tc.target, onDemand, tc.instances)
				if tc.change != nil {
					tc.change(input)
				}
				out, err := client.CreateFleet(t.Context(), input)
				if err != nil {
					t.Fatal(err)
				}
				got := map[string]int{}
				for _, group := range out.Instances {
					got[poolName(group.LaunchTemplateAndOverrides)] += len(group.InstanceIds)
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("instances (-want +got):\n%s", diff)
				}
				var failures []string
				for _, failure := range out.Errors {
					failures = append(failures, *failure.ErrorCode+" "+poolName(failure.LaunchTemplateAndOverrides))
				}
				if diff := cmp.Diff(tc.wantErrors, failures); diff != "" {
					t.Errorf("errors (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func poolName(origin *types.LaunchTemplateAndOverridesResponse) string {
	return fmt.Sprintf("%s/%s", origin.Overrides.InstanceType, aws.ToString(origin.Overrides.AvailabilityZone))
}

func TestFleetRefusals(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		change   func(*ec2.CreateFleetInput)
		wantCode string
	}{
		"dry run":            {func(in *ec2.CreateFleetInput) { in.DryRun = aws.Bool(true) }, "DryRunOperation"},
		"missing template":   {func(in *ec2.CreateFleetInput) { setTemplate(in, aws.String("other"), nil) }, "InvalidLaunchTemplateName.NotFoundException"},
		"missing id":         {func(in *ec2.CreateFleetInput) { setTemplate(in, nil, aws.String("lt-0")) }, "InvalidLaunchTemplateId.NotFound"},
		"not instant":        {func(in *ec2.CreateFleetInput) { in.Type = types.FleetTypeMaintain }, "InvalidParameterValue"},
		"no overrides":       {func(in *ec2.CreateFleetInput) { in.LaunchTemplateConfigs[0].Overrides = nil }, "InvalidFleetConfig"},
		"no target":          {func(in *ec2.CreateFleetInput) { in.TargetCapacitySpecification.TotalTargetCapacity = aws.Int32(0) }, "InvalidParameterValue"},
		"unserved parameter": {func(in *ec2.CreateFleetInput) { in.OnDemandOptions.SingleInstanceType = aws.Bool(true) }, "UnknownParameter"},
		"bad strategy":       {func(in *ec2.CreateFleetInput) { in.OnDemandOptions.AllocationStrategy = "best" }, "InvalidParameterValue"},
		"bad tag target":     {func(in *ec2.CreateFleetInput) { in.TagSpecifications[0].ResourceType = types.ResourceTypeVpc }, "InvalidParameterValue"},
		"no such profile":    {func(in *ec2.CreateFleetInput) { setTemplate(in, aws.String("profiled"), nil) }, ""}, // in the error list
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, client := start(t, Options{})
				makeTemplate(t, s, client, "template")
				if _, err := client.CreateLaunchTemplate(t.Context(), &ec2.CreateLaunchTemplateInput{
					LaunchTemplateName: aws.String("profiled"),
					LaunchTemplateData: &types.RequestLaunchTemplateData{
						ImageId: aws.String(s.imageNamed(t, amd64Image)), IamInstanceProfile: &types.LaunchTemplateIamInstanceProfileSpecificationRequest{Name: aws.String("nobody")},
					},
				}); err != nil {
					t.Fatal(err)
				}
				input := fleetInput(s, "template", 1, onDemand, onlyM5Large)
				tc.change(input)
				_, err := client.CreateFleet(t.Context(), input)
				if got := errorCode(err); got != tc.wantCode {
					t.Errorf("got %q, want %q", got, tc.wantCode)
				}
				if n := len(s.Instances()); n != 0 {
					t.Errorf("%d instances were launched", n)
				}
			})
		})
	}
}

func setTemplate(in *ec2.CreateFleetInput, name, id *string) {
	in.LaunchTemplateConfigs[0].LaunchTemplateSpecification = &types.FleetLaunchTemplateSpecificationRequest{
		LaunchTemplateName: name, LaunchTemplateId: id, Version: aws.String("$Latest"),
	}
}

func TestFleetTokens(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, client := start(t, Options{})
		makeTemplate(t, s, client, "template")
		request := func(n int32, token string) *ec2.CreateFleetInput {
			in := fleetInput(s, "template", n, onDemand, mixedTypes)
			in.ClientToken = &token
			return in
		}
		var group sync.WaitGroup
		replies := make([]*ec2.CreateFleetOutput, 10)
		for i := range replies { // at the same time
			group.Go(func() {
				out, err := client.CreateFleet(t.Context(), request(2, "a"))
				if err != nil {
					t.Error(err)
				}
				replies[i] = out
			})
		}
		group.Wait()
		for _, reply := range replies[1:] {
			if diff := cmp.Diff(replies[0], reply, cmpopts.IgnoreFields(ec2.CreateFleetOutput{}, "ResultMetadata"), cmpopts.IgnoreUnexported(
				ec2.CreateFleetOutput{}, types.CreateFleetInstance{}, types.LaunchTemplateAndOverridesResponse{}, types.FleetLaunchTemplateOverrides{}, types.FleetLaunchTemplateSpecification{},
			)); diff != "" {
				t.Fatalf("a replay differs:\n%s", diff)
			}
		}
		if n := len(s.Instances()); n != 2 {
			t.Fatalf("ten calls with one token launched %d instances, want 2", n)
		}
		_, err := client.CreateFleet(t.Context(), request(3, "a"))
		if got := errorCode(err); got != "IdempotentParameterMismatch" {
			t.Errorf("other parameters: got %q", got)
		}
		if _, err := client.CreateFleet(t.Context(), request(2, "b")); err != nil {
			t.Error(err)
		}
		time.Sleep(47 * time.Hour) // the machines may be long gone, the token is not
		if _, err := client.CreateFleet(t.Context(), request(2, "a")); err != nil {
			t.Error(err)
		}
		if n := len(s.Instances()); n != 4 {
			t.Errorf("got %d instances, want 4", n)
		}
		time.Sleep(2 * time.Hour)
		if _, err := client.CreateFleet(t.Context(), request(1, "a")); err != nil {
			t.Errorf("a token is forgotten after two days: %v", err)
		}
	})
}

func TestSpotPoolsAreDeterministic(t *testing.T) {
	t.Parallel()
	launch := func(seed uint64) (pools []string, price float64) {
		synctest.Test(t, func(t *testing.T) {
			s, client := start(t, Options{Seed: seed})
			makeTemplate(t, s, client, "template")
			out, err := client.CreateFleet(t.Context(), fleetInput(s, "template", 3, spot, mixedTypes))
			if err != nil {
				t.Fatal(err)
			}
			for _, group := range out.Instances {
				pools = append(pools, poolName(group.LaunchTemplateAndOverrides))
			}
			described, err := client.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{InstanceIds: launchedIDs(out)})
			if err != nil {
				t.Fatal(err)
			}
			for _, reservation := range described.Reservations {
				if in := reservation.Instances[0]; in.SpotInstanceRequestId == nil || in.InstanceLifecycle != types.InstanceLifecycleTypeSpot {
					t.Errorf("not marked as spot: %+v", in)
				}
			}
			price = s.Instances()[0].PriceUSDPerHour
		})
		return pools, price
	}
	first, price := launch(1)
	second, _ := launch(2)
	if !slices.Equal(first, second) || len(first) == 0 {
		t.Errorf("got pools %v and %v, want the same", first, second)
	}
	if price <= 0 || price >= Prices()["r5.large"]/2 {
		t.Errorf("spot price %v is not a spot price", price)
	}
}

// Free addresses come back, and never more are used than there are.
func TestAddressesProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := New(Options{Subnets: []SubnetSpec{{Zone: "us-east-1a", CIDR: "10.1.2.0/28"}}})
		sn := s.subnets[0]
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if len(sn.used) > 0 && rapid.Bool().Draw(t, "release") {
				for addr := range sn.used {
					delete(sn.used, addr)
					break
				}
				continue
			}
			before := sn.free()
			addr, ok := sn.take()
			if ok != (before > 0) {
				t.Fatalf("take with %d free: got %v", before, ok)
			}
			if !ok {
				continue
			}
			if last := addr.As4()[3]; last < 4 || last > 14 {
				t.Fatalf("handed out %s, which EC2 keeps", addr)
			}
		}
		if sn.free()+len(sn.used) != 11 {
			t.Fatalf("%d free and %d used of 11", sn.free(), len(sn.used))
		}
	})
}
