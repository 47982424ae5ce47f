// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/fakeaws"
	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
)

// inSubnet is the demo class with a single subnet, by its Name tag.
func inSubnet(name string) *awsv1.EC2NodeClass {
	class := demoClass()
	class.Spec.SubnetSelectorTerms = []awsv1.SubnetSelectorTerm{{Tags: map[string]string{"Name": name}}}
	return class
}

func zonesOf(t *cloudprovider.InstanceType) []string {
	var zones []string
	for _, offering := range t.Offerings {
		if offering.CapacityType == onDemand && offering.Available {
			zones = append(zones, offering.Zone)
		}
	}
	return zones
}

// B56: nothing of a class is found under another's, be it of the same name, generation and age, or equal but for its
// subnets; and what EC2 refused to one says nothing about the subnets of the other.
func TestB56ClassesAreNotMixedUp(t *testing.T) {
	t.Parallel()
	c := newCloud(t)
	first, second := inSubnet("demo-private-1"), inSubnet("demo-private-2")
	second.Name, second.UID = "second", "5f0e8c1e-0000-4000-8000-000000000002"
	first, second = c.ready(t, first), c.ready(t, second)
	check := func(class *awsv1.EC2NodeClass, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, zonesOf(c.typeNamed(t, class, "m5.large"))); diff != "" {
			t.Errorf("zones of %s (-want +got):\n%s", class.Name, diff)
		}
	}
	check(first, "us-east-1a")
	check(second, "us-east-1b")
	c.aws.SetFault(fakeaws.Rule{Action: "CreateFleet", PerPool: true, Zone: "us-east-1a", Code: "InsufficientInstanceCapacity"})
	if _, err := c.Launch(t.Context(), launchRequest(first, "g1-1", c.options(t, first, onDemand, "m5.large"))); err == nil {
		t.Error("launched where there is no capacity")
	}
	check(first)
	check(second, "us-east-1b")

	// A neighbour: the first class is deleted, and another of its name is made, at the same generation.
	again := inSubnet("demo-private-3")
	again.UID = "5f0e8c1e-0000-4000-8000-000000000003"
	if _, err := c.InstanceTypes(again); !errors.Is(err, cloudprovider.ErrNotReady) {
		t.Errorf("types of a class that nobody looked up: %v", err)
	}
	again = c.ready(t, again)
	check(again, "us-east-1c")
	if _, err := c.InstanceTypes(first); !errors.Is(err, cloudprovider.ErrNotReady) {
		t.Errorf("types of a class that is gone: %v", err)
	}
}

// How often what is asked, in the first hour of a class that nothing happens to.
func TestResolveAsksOnlyForWhatIsOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(t)
		class := c.ready(t, demoClass())
		for range 60 {
			time.Sleep(resolveTTL)
			c.ready(t, class)
		}
		for action, want := range map[string]int{"DescribeSubnets": 61, "DescribeSecurityGroups": 13, "DescribeImages": 13, "GetParameter": 5, "CreateInstanceProfile": 1} {
			if got := c.calls(action); got != want {
				t.Errorf("%s: %d calls, want %d", action, got, want)
			}
		}
	})
}

// A part that AWS knows to be missing makes the class not ready for that reason; one that AWS does not tell of leaves it
// open.
func TestDependenciesOfValidation(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		rule   *fakeaws.Rule
		change func(*awsv1.EC2NodeClass)
		want   metav1.ConditionStatus
		says   string
	}{
		"missing": {change: func(c *awsv1.EC2NodeClass) { c.Spec.SubnetSelectorTerms[0].Tags["x"] = "y" }, want: metav1.ConditionFalse, says: "waiting for SubnetsReady"},
		"unknown": {rule: &fakeaws.Rule{Action: "DescribeSubnets", Code: "UnauthorizedOperation", Status: 403}, want: metav1.ConditionUnknown, says: "waiting for SubnetsReady"},
		"both": {
			rule:   &fakeaws.Rule{Action: "DescribeSecurityGroups", Code: "UnauthorizedOperation", Status: 403},
			change: func(c *awsv1.EC2NodeClass) { c.Spec.SubnetSelectorTerms[0].Tags["x"] = "y" }, want: metav1.ConditionFalse, says: "waiting for SubnetsReady, SecurityGroupsReady",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCloud(t)
			if tc.rule != nil {
				c.aws.SetFault(*tc.rule)
			}
			class := demoClass()
			if tc.change != nil {
				tc.change(class)
			}
			status, err := c.Resolve(t.Context(), class)
			if (err != nil) != (tc.rule != nil) {
				t.Errorf("Resolve: %v", err)
			}
			class.Status = *status
			got := class.StatusConditions().Get(awsv1.ConditionTypeValidationSucceeded)
			if got.Status != tc.want || got.Reason != "DependenciesNotReady" || got.Message != tc.says {
				t.Errorf("%s %s %q, want %s %q", got.Status, got.Reason, got.Message, tc.want, tc.says)
			}
			kinds := []string{"AMIsReady", "InstanceProfileReady", "PlacementGroupReady", "Ready", "SecurityGroupsReady", "SubnetsReady", "ValidationSucceeded"}
			var have []string
			for _, condition := range class.Status.Conditions {
				have = append(have, condition.Type)
			}
			slices.Sort(have)
			if diff := cmp.Diff(kinds, have); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
}
