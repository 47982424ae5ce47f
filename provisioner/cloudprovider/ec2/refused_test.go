// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/fakeaws"
	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
)

// available counts a type's available offerings of a capacity type.
func (c *cloud) available(t *testing.T, of *cloudprovider.InstanceType, capacityType string) int {
	t.Helper()
	n := 0
	for _, offering := range of.Offerings {
		if offering.CapacityType == capacityType && offering.Available {
			n++
		}
	}
	return n
}

func TestRefusedPoolIsAvoidedForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(t)
		class := c.ready(t, demoClass())
		c.aws.SetFault(fakeaws.Rule{Action: "CreateFleet", PerPool: true, InstanceType: "m5.large", Zone: "us-east-1a", Code: "InsufficientInstanceCapacity"})
		before, err := c.InstanceTypes(class)
		if err != nil {
			t.Fatal(err)
		}
		result := c.launch(t, launchRequest(class, "g1-1", c.options(t, class, onDemand, "m5.large")))
		if len(result.Instances) != 1 || len(result.Failures) != 1 || result.Failures[0].Zone != "us-east-1a" || result.Failures[0].InstanceType != "m5.large" || result.Failures[0].CapacityType != "on-demand" {
			t.Errorf("one zone of three refused: %+v", result)
		}
		if n := c.available(t, c.typeNamed(t, class, "m5.large"), onDemand); n != 2 {
			t.Errorf("%d zones available, want 2", n)
		}
		for _, it := range before {
			for _, offering := range it.Offerings {
				if !offering.Available {
					t.Fatalf("%s: a list that was handed out has changed", it.Name)
				}
			}
		}
		time.Sleep(capacityFor)
		if n := c.available(t, c.typeNamed(t, class, "m5.large"), onDemand); n != 3 {
			t.Errorf("%d zones available after %v, want 3", n, capacityFor)
		}
	})
}

func TestNothingLaunched(t *testing.T) {
	cases := map[string]struct {
		rule fakeaws.Rule
		want cloudprovider.LaunchFailure
		// what is available afterwards: of m5.large and of m5.4xlarge, which was refused too
		wantLarge, want4xlarge int
	}{
		"no capacity":     {fakeaws.Rule{PerPool: true, Code: "InsufficientInstanceCapacity"}, cloudprovider.InsufficientCapacity, 3, 0},
		"quota":           {fakeaws.Rule{PerPool: true, Code: "VcpuLimitExceeded"}, cloudprovider.InsufficientCapacity, 3, 0},
		"profile":         {fakeaws.Rule{PerPool: true, Code: "InvalidParameterValue", Message: "Invalid IAM Instance Profile name"}, cloudprovider.NodeClassNotReady, 3, 3},
		"permission":      {fakeaws.Rule{Code: "UnauthorizedOperation", Status: 403}, cloudprovider.NodeClassNotReady, 3, 3},
		"throttled":       {fakeaws.Rule{Code: "RequestLimitExceeded", Status: 503}, cloudprovider.Throttled, 3, 3},
		"throttled pools": {fakeaws.Rule{PerPool: true, Code: "RequestLimitExceeded"}, cloudprovider.Throttled, 3, 3},
		"EC2's own fault": {fakeaws.Rule{PerPool: true, Code: "InternalError"}, cloudprovider.Throttled, 3, 3},
		"internal":        {fakeaws.Rule{Code: "InternalError", Status: 500}, cloudprovider.Unknown, 3, 3},
		"fleets":          {fakeaws.Rule{Code: "MaxFleetCountExceeded"}, cloudprovider.InsufficientCapacity, 0, 0},
		"volumes in zone": {fakeaws.Rule{PerPool: true, Code: "InsufficientVolumeCapacity", Zone: "us-east-1a"}, "", 2, 2},
		"refused":         {fakeaws.Rule{Code: "InvalidFleetConfig"}, cloudprovider.Rejected, 3, 3},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud(t)
				class := c.ready(t, demoClass())
				tc.rule.Action = "CreateFleet"
				c.aws.SetFault(tc.rule)
				_, err := c.Launch(t.Context(), launchRequest(class, "g1-1", c.options(t, class, onDemand, "m5.4xlarge")))
				if tc.want == "" && err == nil {
					err = &cloudprovider.LaunchError{Code: tc.rule.Code}
				}
				if failure := wantLaunchError(t, err); failure.Failure != tc.want || failure.Code != tc.rule.Code {
					t.Errorf("got %v, want %s", err, tc.want)
				}
				for typeName, want := range map[string]int{"m5.large": tc.wantLarge, "m5.4xlarge": tc.want4xlarge} {
					if got := c.available(t, c.typeNamed(t, class, typeName), onDemand); got != want {
						t.Errorf("%s: %d offerings available, want %d", typeName, got, want)
					}
				}
			})
		})
	}
}

func TestSpotWithoutItsRole(t *testing.T) {
	t.Parallel()
	c := newCloud(t)
	class := c.ready(t, demoClass())
	c.aws.SetFault(fakeaws.Rule{Action: "CreateFleet", PerPool: true, CapacityType: "spot", Code: spotRoleCode})
	_, err := c.Launch(t.Context(), launchRequest(class, "g1-1", c.options(t, class, spot, "m5.large")))
	if failure := wantLaunchError(t, err); failure.Failure != cloudprovider.InsufficientCapacity {
		t.Errorf("got %v", err)
	}
	other := c.typeNamed(t, class, "c6i.large")
	if c.available(t, other, spot) != 0 || c.available(t, other, onDemand) != 3 {
		t.Errorf("spot must be off for every type, on-demand on: %+v", other.Offerings)
	}
}

func TestFullSubnets(t *testing.T) {
	t.Parallel()
	c := newCloud(t)
	class := c.ready(t, demoClass())
	c.aws.SetFault(fakeaws.Rule{Action: "CreateFleet", PerPool: true, Zone: "us-east-1b", Code: freeAddressesCode})
	c.launch(t, launchRequest(class, "g1-1", c.options(t, class, onDemand, "m5.large")[1:]))
	if n := c.available(t, c.typeNamed(t, class, "c5.large"), onDemand); n != 2 {
		t.Errorf("%d zones available, want 2: every type is out where the only subnet is full", n)
	}
}

func TestLaunchWithoutResolve(t *testing.T) {
	t.Parallel()
	c := newCloud(t)
	class := c.ready(t, demoClass())
	options := c.options(t, class, onDemand, "m5.large")
	_, err := restart(c).Launch(t.Context(), launchRequest(class, "g1-1", options))
	if failure := wantLaunchError(t, err); failure.Failure != cloudprovider.NodeClassNotReady {
		t.Errorf("got %v", err)
	}
}
