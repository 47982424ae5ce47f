// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
)

func TestRequestThatCannotBeMade(t *testing.T) {
	t.Parallel()
	c := newCloud(t)
	class := c.ready(t, demoClass())
	large := demoClass()
	large.Name, large.UID, large.Spec.UserData = "large", "5f0e8c1e-0000-4000-8000-000000000009", aws.String("#!/bin/sh\n"+strings.Repeat("#", userDataLimit-800))
	large = c.ready(t, large) // it fits, without the labels of a NodePool
	options := c.options(t, class, onDemand, "m5.large")
	cases := map[string]struct {
		change func(*cloudprovider.LaunchRequest)
		want   cloudprovider.LaunchFailure
	}{
		"no token":         {func(r *cloudprovider.LaunchRequest) { r.Token = "" }, cloudprovider.Rejected},
		"no machines":      {func(r *cloudprovider.LaunchRequest) { r.Count, r.Claims = 0, nil }, cloudprovider.Rejected},
		"claims":           {func(r *cloudprovider.LaunchRequest) { r.Count = 2 }, cloudprovider.Rejected},
		"no options":       {func(r *cloudprovider.LaunchRequest) { r.Options = nil }, cloudprovider.InsufficientCapacity},
		"user data":        {func(r *cloudprovider.LaunchRequest) { r.NodeClass = large; r.Labels["long"] = strings.Repeat("x", 800) }, cloudprovider.NodeClassNotReady},
		"other generation": {func(r *cloudprovider.LaunchRequest) { r.NodeClass = demoClass(); r.NodeClass.Generation = 7 }, cloudprovider.NodeClassNotReady},
		"foreign zone": {func(r *cloudprovider.LaunchRequest) {
			r.Options = []cloudprovider.LaunchOption{{InstanceType: options[0].InstanceType, Offering: cloudprovider.Offering{Zone: "us-east-1f", CapacityType: onDemand}}}
		}, cloudprovider.InsufficientCapacity},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req := launchRequest(class, "token-"+name, options)
			tc.change(&req)
			before := len(c.aws.Calls())
			_, err := c.Launch(t.Context(), req)
			if failure := wantLaunchError(t, err); failure.Failure != tc.want {
				t.Errorf("got %v, want %s", err, tc.want)
			}
			if n := len(c.aws.Calls()) - before; n != 0 {
				t.Errorf("%d calls were made", n)
			}
		})
	}
}

// Whatever the options: every override once, in the order of the options within its template, within EC2's limits, of
// one capacity type; and the same again for the same request.
func TestFleetProperties(t *testing.T) {
	t.Parallel()
	c := newCloud(t)
	class := c.ready(t, demoClass())
	types, err := c.InstanceTypes(class)
	if err != nil {
		t.Fatal(err)
	}
	var all []cloudprovider.LaunchOption
	for _, it := range types[:200] {
		for _, offering := range it.Offerings {
			all = append(all, cloudprovider.LaunchOption{InstanceType: it, Offering: offering})
		}
	}
	resolved := c.classes[class.Name]
	rapid.Check(t, func(t *rapid.T) {
		options := rapid.SliceOfN(rapid.SampledFrom(all), 1, 500).Draw(t, "options")
		req := launchRequest(class, "t", options)
		f, failure := c.newFleet(resolved, &req, nil, c.roomsOf(resolved))
		if failure != nil {
			t.Fatal(failure)
		}
		order := map[pool]int{}
		for i, option := range slices.Backward(options) {
			order[pool{option.InstanceType.Name, option.Offering.Zone, option.Offering.CapacityType}] = i
		}
		distinct, seen := map[string]bool{}, map[pool]bool{}
		for _, config := range f.configs {
			last := -1
			for _, override := range config.Overrides {
				key := pool{string(override.InstanceType), aws.ToString(override.AvailabilityZone), f.capacityType}
				i, asked := order[key]
				if !asked || seen[key] || i < last {
					t.Fatalf("override %+v: asked %v, twice %v, order %d after %d", key, asked, seen[key], i, last)
				}
				seen[key], last, distinct[key.instanceType] = true, i, true
			}
		}
		if len(distinct) > maxTypes || len(seen) > maxOverrides || len(f.configs) > maxConfigs {
			t.Fatalf("%d types, %d overrides, %d templates", len(distinct), len(seen), len(f.configs))
		}
		again, failure := c.newFleet(resolved, &req, f.subnets, nil)
		if failure != nil {
			t.Fatal(failure)
		}
		unexported := cmpopts.IgnoreUnexported(*f.input("x"), f.configs[0], *f.configs[0].LaunchTemplateSpecification, f.configs[0].Overrides[0],
			*f.input("x").TargetCapacitySpecification, f.input("x").TagSpecifications[0], f.input("x").TagSpecifications[0].Tags[0])
		ignoreOptions := cmpopts.IgnoreFields(*f.input("x"), "SpotOptions", "OnDemandOptions")
		if diff := cmp.Diff(f.input("t"), again.input("t"), unexported, ignoreOptions); diff != "" {
			t.Fatalf("the same request (-first +again):\n%s", diff)
		}
	})
}
