// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/fakeaws"
	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
)

func TestLaunch(t *testing.T) {
	t.Parallel()
	c := newCloud(t)
	class := c.ready(t, demoClass())
	req := launchRequest(class, "g1-1", c.options(t, class, onDemand, "m5.large", "c5.xlarge", "m6g.large"))
	before := len(c.aws.Calls())
	result := c.launch(t, req)
	var actions []string
	for _, call := range c.aws.Calls()[before:] {
		actions = append(actions, call.Action)
	}
	// m5.large and m6g.large have other images, c5.xlarge another pod limit.
	if diff := cmp.Diff([]string{"CreateLaunchTemplate", "CreateLaunchTemplate", "CreateLaunchTemplate", "CreateFleet"}, actions); diff != "" {
		t.Errorf("calls of the first launch (-want +got):\n%s", diff)
	}
	if len(result.Instances) != 1 || len(result.Failures) != 0 {
		t.Fatalf("Launch gave %+v", result)
	}
	got := result.Instances[0]
	machine := c.aws.Instances()[0]
	if got.ID != machine.ID || got.InstanceType != "m6g.large" || got.Zone != machine.Zone || got.SubnetID != machine.SubnetID ||
		got.ProviderID != "aws:///"+machine.Zone+"/"+machine.ID || got.CapacityType != "on-demand" || got.ZoneID == "" || got.ImageID == "" {
		t.Errorf("got %+v for machine %+v", got, machine)
	}
	if machine.BootError != "" {
		t.Errorf("the machine does not boot: %s", machine.BootError)
	}
	want := map[string]string{
		"kubernetes.io/cluster/demo": "owned", "eks:eks-cluster-name": "demo", "karpenter.sh/nodepool": "default",
		"karpenter.k8s.aws/ec2nodeclass": "default", "jit-scheduler.io/launch-group": "group-g1-1",
	}
	tags := maps.Clone(machine.Tags)
	maps.DeleteFunc(tags, func(key, _ string) bool { return strings.HasPrefix(key, "aws:") })
	if diff := cmp.Diff(want, tags); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}

	before = len(c.aws.Calls())
	req.Token = "g2-1"
	start := time.Now()
	c.launch(t, req)
	t.Logf("second launch: %v", time.Since(start))
	if after := c.aws.Calls()[before:]; len(after) != 1 || after[0].Action != "CreateFleet" {
		t.Errorf("the second launch made %d calls, want CreateFleet only", len(after))
	}
}

func TestAllocatableIsNeverTooMuch(t *testing.T) {
	t.Parallel()
	c := newCloud(t)
	class := demoClass()
	class.Spec.Kubelet = kubeletWithEverything()
	class = c.ready(t, class)
	for i, name := range []string{"m5.large", "c6gd.medium", "c5.metal", "g5.12xlarge", "inf2.xlarge", "p4d.24xlarge"} {
		options := c.options(t, class, onDemand, name)
		c.launch(t, launchRequest(class, "t"+name, options))
		machine := c.aws.Instances()[i]
		for key, amount := range options[0].InstanceType.Allocatable {
			real, ok := machine.Allocatable[string(key)]
			if strings.HasPrefix(string(key), "vpc.amazonaws.com/") {
				continue // only with a setting of the network plugin
			}
			if kib := int64(1024); !ok || (amount.MilliValue() != mustQuantity(t, real).MilliValue() && amount.Value()-amount.Value()%kib != mustQuantity(t, real).Value()) {
				t.Errorf("%s: %s: promised %s, the machine has %s", name, key, amount.String(), real)
			}
		}
	}
}

func TestLaunchCapacityType(t *testing.T) {
	t.Parallel()
	c := newCloud(t)
	class := c.ready(t, demoClass())
	options := append(c.options(t, class, onDemand, "m5.large"), c.options(t, class, spot, "m5.large")...)
	result := c.launch(t, launchRequest(class, "mixed", options))
	if got := result.Instances[0].CapacityType; got != "spot" {
		t.Errorf("with spot among the options: launched %s", got)
	}
	listed, err := c.List(t.Context())
	if err != nil || len(listed) != 1 || listed[0].CapacityType != "spot" {
		t.Errorf("List: %+v, %v", listed, err)
	}
}

func TestReplay(t *testing.T) {
	t.Parallel()
	c := newCloud(t)
	class := c.ready(t, demoClass())
	req := launchRequest(class, "g1-1", c.options(t, class, onDemand, "m5.large", "c5.large"))
	req.Count, req.Claims = 3, []string{"a", "b", "c"}
	first := c.launch(t, req)
	again := c.launch(t, req)
	ids := func(r *cloudprovider.LaunchResult) (ids []string) {
		for _, i := range r.Instances {
			ids = append(ids, i.ID)
		}
		return ids
	}
	if diff := cmp.Diff(ids(first), ids(again)); diff != "" || len(ids(first)) != 3 {
		t.Errorf("replay (-first +again):\n%s", diff)
	}
	restarted := restart(c)
	restarted.ready(t, class)
	if diff := cmp.Diff(ids(first), ids(restarted.launch(t, req))); diff != "" {
		t.Errorf("replay after a restart (-first +again):\n%s", diff)
	}
	req.Options = req.Options[:1]
	other := restart(c)
	other.ready(t, class)
	_, err := other.Launch(t.Context(), req)
	if failure := wantLaunchError(t, err); failure.Failure != cloudprovider.TokenMismatch {
		t.Errorf("other parameters: %v", err)
	}
	found, err := c.FindLaunched(t.Context(), req.Group)
	if err != nil || len(found) != 3 || len(c.aws.Instances()) != 3 {
		t.Errorf("FindLaunched: %d instances, %v; %d exist", len(found), err, len(c.aws.Instances()))
	}
}

func TestWithheldReplyIsUnknownThenReplayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(t)
		class := c.ready(t, demoClass())
		c.aws.SetFault(fakeaws.Rule{Action: "CreateFleet", WithholdReply: true, Times: 1})
		req := launchRequest(class, "g1-1", c.options(t, class, onDemand, "m5.large"))
		_, err := c.Launch(t.Context(), req)
		if failure := wantLaunchError(t, err); failure.Failure != cloudprovider.Unknown {
			t.Fatalf("withheld reply: %v", err)
		}
		result := c.launch(t, req)
		if len(result.Instances) != 1 || len(c.aws.Instances()) != 1 {
			t.Errorf("replay gave %d instances, %d exist", len(result.Instances), len(c.aws.Instances()))
		}
	})
}

func TestVanishedTemplateIsCreatedAgain(t *testing.T) {
	t.Parallel()
	c := newCloud(t)
	class := c.ready(t, demoClass())
	req := launchRequest(class, "g1-1", c.options(t, class, onDemand, "m5.large"))
	c.launch(t, req)
	other := restart(c)
	if err := other.Sweep(t.Context(), 0); err != nil || len(c.aws.LaunchTemplates()) != 0 {
		t.Fatalf("Sweep by another process: %v, %d templates", err, len(c.aws.LaunchTemplates()))
	}
	req.Token = "g2-1"
	c.launch(t, req)
	if n := len(c.aws.LaunchTemplates()); n != 1 {
		t.Errorf("%d launch templates, want 1", n)
	}
}

func TestInvisibleTemplateIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		settings := fakeaws.DefaultSettings()
		settings.LaunchTemplateLag = metav1.Duration{Duration: 2 * time.Second}
		c := newCloud(t, func(o *fakeaws.Options) { o.Settings = &settings })
		class := c.ready(t, demoClass())
		c.launch(t, launchRequest(class, "g1-1", c.options(t, class, onDemand, "m5.large")))
	})
}

func wantLaunchError(t *testing.T, err error) *cloudprovider.LaunchError {
	t.Helper()
	failure, ok := errors.AsType[*cloudprovider.LaunchError](err)
	if !ok {
		t.Fatalf("error %v is no LaunchError", err)
	}
	return failure
}

func TestSweepSparesWhatIsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(t)
		class := c.ready(t, demoClass())
		old := launchRequest(class, "old", c.options(t, class, onDemand, "m5.large"))
		c.launch(t, old)
		time.Sleep(90 * time.Second)
		c.launch(t, launchRequest(class, "new", c.options(t, class, onDemand, "c5.xlarge")))
		sweep := func(want int) {
			t.Helper()
			if err := c.Sweep(t.Context(), 2*time.Minute); err != nil || len(c.aws.LaunchTemplates()) != want {
				t.Errorf("after Sweep: %d launch templates, want %d, %v", len(c.aws.LaunchTemplates()), want, err)
			}
		}
		sweep(2)
		time.Sleep(40 * time.Second)
		c.aws.SetFault(fakeaws.Rule{Action: "CreateFleet", Delay: metav1.Duration{Duration: 10 * time.Second}, Times: 1})
		done := make(chan error, 1)
		go func() {
			_, err := c.Launch(context.WithoutCancel(t.Context()), launchRequest(class, "slow", old.Options))
			done <- err
		}()
		synctest.Wait()
		sweep(2) // the old one is in use by a launch in flight
		if err := <-done; err != nil {
			t.Error(err)
		}
		time.Sleep(2*time.Minute - time.Second)
		sweep(1)
		time.Sleep(time.Second)
		sweep(0)
	})
}

func TestFullSubnetIsAvoided(t *testing.T) {
	t.Parallel()
	c := newCloud(t, func(o *fakeaws.Options) {
		o.Subnets = []fakeaws.SubnetSpec{{Zone: "us-east-1a", CIDR: "10.0.0.0/24"}, {Zone: "us-east-1a", CIDR: "10.0.1.0/24"}}
	})
	class := c.ready(t, demoClass())
	subnets := map[string]int{}
	for _, token := range []string{"a", "b", "c", "d"} {
		result := c.launch(t, launchRequest(class, token, c.options(t, class, onDemand, "m5.large")))
		subnets[result.Instances[0].SubnetID]++
	}
	if got := slices.Sorted(maps.Values(subnets)); !slices.Equal(got, []int{2, 2}) {
		t.Errorf("launches by subnet: %v, want both used in turn", subnets)
	}
}
