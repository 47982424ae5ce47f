// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/fakeaws"
	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
)

// The launcher asks for nothing that the memory has out, of one capacity type, in the order reserved, spot, on-demand.
func TestPick(t *testing.T) {
	t.Parallel()
	c := newCloud(t)
	class := c.ready(t, demoClass())
	resolved := c.classes[class.Name]
	now := time.Now()
	plenty := map[string]room{}
	for _, s := range resolved.subnets {
		plenty[s.id] = room{1000, 1000}
	}
	mixed := slices.Concat(c.options(t, class, spot, "m5.large", "c5.large"), c.options(t, class, onDemand, "m5.large", "c5.large"))
	dear := slices.Clone(mixed)
	for i := range dear {
		if dear[i].Offering.CapacityType == spot {
			dear[i].Offering.Price = 9
		}
	}
	oneDear := slices.Clone(mixed)
	oneDear[0].Offering.Price = 9
	cases := map[string]struct {
		options   []cloudprovider.LaunchOption
		refused   []string // code type zone capacityType
		minValues map[string]int
		wantType  string // capacity type
		want      int    // options; 0: refused without a call
		wantWhy   string
	}{
		"spot first":                    {options: mixed, wantType: spot, want: 6},
		"a pool is out":                 {options: mixed, refused: []string{"InsufficientInstanceCapacity m5.large us-east-1a spot"}, wantType: spot, want: 5},
		"spot role":                     {options: mixed, refused: []string{spotRoleCode + " m5.large us-east-1a spot"}, wantType: onDemand, want: 6},
		"spot quota (B51)":              {options: mixed, refused: []string{"MaxSpotInstanceCountExceeded m5.large us-east-1a spot"}, wantType: onDemand, want: 6},
		"spot quota, spot only":         {options: mixed[:6], refused: []string{"MaxSpotInstanceCountExceeded m5.large us-east-1a spot"}, wantWhy: "MaxSpotInstanceCountExceeded"},
		"vCPU quota":                    {options: mixed[6:], refused: []string{"VcpuLimitExceeded m5.large us-east-1a on-demand"}, wantWhy: "VcpuLimitExceeded"},
		"vCPU quota leaves spot (B51)":  {options: mixed, refused: []string{"VcpuLimitExceeded m5.large us-east-1a on-demand"}, wantType: spot, want: 6},
		"spot dearer than on-demand":    {options: dear, wantType: onDemand, want: 6},
		"one spot pool dearer":          {options: oneDear, wantType: spot, want: 5},
		"dear spot counts if it must":   {options: dear, minValues: map[string]int{"node.kubernetes.io/instance-type": 2}, wantType: spot, want: 6},
		"too few values (B50)":          {options: mixed, minValues: map[string]int{"node.kubernetes.io/instance-type": 3}, wantWhy: "has 2 values of 3"},
		"too few are there now (B50)":   {options: c.options(t, class, onDemand, "m5.large", "c5.large"), minValues: map[string]int{"topology.kubernetes.io/zone": 3}, refused: []string{"InsufficientVolumeCapacity m5.large us-east-1a on-demand"}, wantWhy: "has 2 values of 3"},
		"throttled is not out (B53)":    {options: mixed, refused: []string{"RequestLimitExceeded m5.large us-east-1a spot"}, wantType: spot, want: 6},
		"bare metal only if it must be": {options: c.options(t, class, onDemand, "c5.metal", "c5.24xlarge"), wantType: onDemand, want: 3},
		"nothing but metal":             {options: c.options(t, class, onDemand, "c5.metal"), wantType: onDemand, want: 3},
		"fleets":                        {options: mixed, refused: []string{"MaxFleetCountExceeded m5.large us-east-1a spot"}, wantWhy: "MaxFleetCountExceeded"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newUnavailable()
			for _, text := range tc.refused {
				w := strings.Fields(text)
				u.remember(now, moodOf(w[0], ""), resolved.launchable[w[1]].hardware, w[2], w[3], "", "", w[0])
			}
			before := fmt.Sprint(tc.options)
			got, failure := pick(resolved, u, plenty, tc.options, tc.minValues)
			if tc.want == 0 {
				if failure == nil || failure.Failure != cloudprovider.InsufficientCapacity || !failure.Untried || !strings.Contains(failure.Err.Error(), tc.wantWhy) {
					t.Fatalf("picked %d options, %v, want a refusal for %q", len(got), failure, tc.wantWhy)
				}
				return
			}
			if failure != nil || len(got) != tc.want || capacityTypeOf(got) != tc.wantType {
				t.Errorf("picked %d options of %s, %v, want %d of %s", len(got), capacityTypeOf(got), failure, tc.want, tc.wantType)
			}
			if fmt.Sprint(tc.options) != before {
				t.Error("the claim's own list was changed")
			}
		})
	}
}

// What one launch was told, the next does not ask for, and a replay asks for what it asked before.
func TestLauncherUsesTheMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(t)
		class := c.ready(t, demoClass())
		options := slices.Concat(c.options(t, class, spot, "m5.large"), c.options(t, class, onDemand, "m5.large"))
		c.aws.SetFault(fakeaws.Rule{Action: "CreateFleet", PerPool: true, CapacityType: "spot", Code: "MaxSpotInstanceCountExceeded"})
		req := launchRequest(class, "g1-1", options)
		_, err := c.Launch(t.Context(), req)
		if failure := wantLaunchError(t, err); failure.Failure != cloudprovider.InsufficientCapacity || !failure.Spent || failure.Reason != "SpotQuotaExceeded" {
			t.Fatalf("first launch: %+v", failure)
		}
		req.Token = "g1-2"
		if got := c.launch(t, req).Instances[0].CapacityType; got != onDemand {
			t.Errorf("second launch: %s, want on-demand", got)
		}
		replay := launchRequest(class, "g1-1", options)
		before := len(c.aws.Instances())
		if _, err := c.Launch(t.Context(), replay); wantLaunchError(t, err).Failure != cloudprovider.InsufficientCapacity || len(c.aws.Instances()) != before {
			t.Errorf("replay of the first: %v, %d instances", err, len(c.aws.Instances()))
		}
		time.Sleep(quotaFor)
		c.aws.DeleteFault("")
		req.Token = "g2-1"
		if got := c.launch(t, req).Instances[0].CapacityType; got != spot {
			t.Errorf("after %v: %s, want spot", quotaFor, got)
		}
	})
}

// B52: what is tagged depends on the capacity type; an on-demand request has nothing of spot.
func TestOnDemandRequestHasNothingOfSpot(t *testing.T) {
	t.Parallel()
	for _, capacityType := range []string{onDemand, spot} {
		c := newCloud(t)
		class := demoClass()
		class.Spec.Tags = map[string]string{"team": "a"}
		class = c.ready(t, class)
		c.launch(t, launchRequest(class, "g1-1", c.options(t, class, capacityType, "m5.large")))
		for _, call := range c.aws.Calls() {
			for key, value := range call.Params {
				if capacityType == onDemand && (value == "spot-instances-request" || strings.HasPrefix(key, "SpotOptions")) {
					t.Errorf("on-demand: %s has %s = %s", call.Action, key, value)
				}
				if capacityType == spot && strings.HasPrefix(key, "OnDemandOptions") {
					t.Errorf("spot: %s has %s = %s", call.Action, key, value)
				}
			}
		}
	}
}

// The class says which permission its launches lack, until one succeeds.
func TestPermissionIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const plain = "You are not authorized to perform this operation. "
		encoded := fakeaws.EncodedDenial("iam:PassRole", "arn:aws:iam::111122223333:role/KarpenterNodeRole-demo", "arn:aws:sts::111122223333:assumed-role/jit/1")
		cases := []struct {
			name             string
			rule             fakeaws.Rule
			decodeDenied     bool
			wantReason, want string
		}{
			{"in the clear", fakeaws.Rule{Action: "CreateFleet", Message: plain + "User: arn:x is not authorized to perform: ec2:RunInstances on resource: arn:y because no identity-based policy allows it"}, false, "CreateFleetAuthCheckFailed", "not authorized to call ec2:CreateFleet: missing permission ec2:RunInstances on arn:y: no policy of the role allows it"},
			{"of a pool, encoded", fakeaws.Rule{Action: "CreateFleet", PerPool: true, Message: plain + encoded}, false, "CreateFleetAuthCheckFailed", "not authorized to call ec2:CreateFleet: missing permission iam:PassRole on arn:aws:iam::111122223333:role/KarpenterNodeRole-demo: no policy of the role allows it"},
			{"of a template", fakeaws.Rule{Action: "CreateLaunchTemplate", Message: plain + encoded}, false, "CreateLaunchTemplateAuthCheckFailed", "not authorized to call ec2:CreateLaunchTemplate: missing permission iam:PassRole on"},
			{"decoding not permitted", fakeaws.Rule{Action: "CreateFleet", Message: plain + encoded}, true, "CreateFleetAuthCheckFailed", "grant sts:DecodeAuthorizationMessage"},
		}
		for _, tc := range cases {
			c := newCloud(t)
			class := c.ready(t, demoClass())
			if tc.decodeDenied {
				c.aws.SetFault(fakeaws.Rule{Service: "sts", Action: "DecodeAuthorizationMessage", Code: "AccessDenied", Status: 403})
			}
			tc.rule.Code, tc.rule.Status = "UnauthorizedOperation", 403
			id := c.aws.SetFault(tc.rule)
			req := launchRequest(class, "g1-1", c.options(t, class, onDemand, "m5.large"))
			for range 2 {
				_, err := c.Launch(t.Context(), req)
				failure := wantLaunchError(t, err)
				if failure.Failure != cloudprovider.NodeClassNotReady || failure.Reason != "Unauthorized" || !strings.Contains(failure.Err.Error(), tc.want) {
					t.Errorf("%s: %v: %s", tc.name, failure.Failure, failure.Err)
				}
				if strings.Contains(err.Error(), "Encoded") {
					t.Errorf("%s: the encoded part is shown: %v", tc.name, err)
				}
			}
			if n := c.calls("DecodeAuthorizationMessage"); tc.decodeDenied && n != 1 {
				t.Errorf("%s: decoding was asked for %d times, want once", tc.name, n)
			}
			status, err := c.Resolve(t.Context(), class)
			if err != nil {
				t.Fatal(err)
			}
			class.Status = *status
			condition := class.StatusConditions().Get("ValidationSucceeded")
			if !condition.IsFalse() || condition.Reason != tc.wantReason || !strings.Contains(condition.Message, tc.want) || class.StatusConditions().IsTrue("Ready") {
				t.Errorf("%s: condition %+v", tc.name, condition)
			}
			c.aws.DeleteFault(id)
			req.Token = "g1-2"
			c.launch(t, req)
			c.ready(t, class)
		}
	})
}

// Nothing says any more what a launch has shown: the class is believed again, and the next launch tells.
func TestLaunchFaultEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(t)
		class := c.ready(t, demoClass())
		c.aws.SetFault(fakeaws.Rule{Action: "CreateFleet", Code: "UnauthorizedOperation", Status: 403})
		_, err := c.Launch(t.Context(), launchRequest(class, "g1-1", c.options(t, class, onDemand, "m5.large")))
		wantLaunchError(t, err)
		time.Sleep(LaunchFaultFor)
		c.ready(t, class)
	})
}

// B73: an endpoint that takes requests and never answers holds nobody for ever.
func TestEveryCallHasADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(t)
		class := c.ready(t, demoClass())
		options := c.options(t, class, onDemand, "m5.large")
		time.Sleep(time.Hour) // whatever is cached is old
		c.aws.SetFault(fakeaws.Rule{Delay: metav1.Duration{Duration: 24 * time.Hour}})
		const machine = "aws:///us-east-1a/i-0123456789abcdef0"
		ctx := context.WithoutCancel(t.Context())
		for name, call := range map[string]func() error{
			"Launch":       func() error { _, err := c.Launch(ctx, launchRequest(class, "g1-1", options)); return err },
			"Resolve":      func() error { _, err := c.Resolve(ctx, class); return err },
			"FindLaunched": func() error { _, err := c.FindLaunched(ctx, "g"); return err },
			"Get":          func() error { _, err := c.Get(ctx, machine); return err },
			"List":         func() error { _, err := c.List(ctx); return err },
			"Tag":          func() error { return c.Tag(ctx, machine, map[string]string{"a": "b"}) },
			"Terminate":    func() error { return c.Terminate(ctx, machine) },
			"Sweep":        func() error { return c.Sweep(ctx, 0) },
			"Forget":       func() error { return c.Forget(ctx, "other") },
			"Check":        func() error { return c.Check(ctx) },
		} {
			start := time.Now()
			if err := call(); err == nil {
				t.Errorf("%s succeeds without an answer", name)
			}
			if took := time.Since(start); took > 80*time.Second {
				t.Errorf("%s takes %v", name, took)
			}
		}
	})
}

// Throttled describes say nothing of the way to AWS, nor of a class that is known.
func TestThrottlingIsNotUnreadiness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(t)
		class := c.ready(t, demoClass())
		c.aws.SetFault(fakeaws.Rule{Code: "RequestLimitExceeded", Status: 503})
		if err := c.Check(t.Context()); err != nil {
			t.Errorf("Check: %v", err)
		}
		time.Sleep(resolveTTL)
		status, _ := c.Resolve(t.Context(), class)
		if status == nil {
			t.Fatal("no status")
		}
		class.Status = *status
		if !class.StatusConditions().IsTrue("Ready") {
			t.Errorf("conditions: %+v", status.Conditions)
		}
	})
}
