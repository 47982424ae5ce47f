// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/fake"
)

// A rule concerns what its matchers name, in its window, and nothing else.
func TestFaultMatchersAndWindows(t *testing.T) {
	t.Parallel()
	const code = "InternalError"
	cases := map[string]struct {
		rule Rule
		want string // one letter per call, a second apart: F failed, . passed
	}{
		"always":              {Rule{Code: code}, "FFFF"},
		"by tag":              {Rule{Code: code, Tags: map[string]string{"karpenter.sh/nodepool": "def*"}}, "FFFF"},
		"another tag":         {Rule{Code: code, Tags: map[string]string{"karpenter.sh/nodepool": "other"}}, "...."},
		"by parameter":        {Rule{Code: code, Params: map[string]string{"Type": "inst?nt"}}, "FFFF"},
		"another parameter":   {Rule{Code: code, Params: map[string]string{"Type": "maintain"}}, "...."},
		"absent parameter":    {Rule{Code: code, Params: map[string]string{"Context": "*"}}, "...."},
		"by subnet":           {Rule{Code: code, SubnetID: "A"}, "FFFF"},
		"another subnet":      {Rule{Code: code, SubnetID: "B"}, "...."},
		"the second call":     {Rule{Code: code, After: 1, Times: 1}, ".F.."},
		"from two seconds on": {Rule{Code: code, StartsAfter: seconds(2)}, "..FF"},
		"for two seconds":     {Rule{Code: code, EndsAfter: seconds(2)}, "FF.."},
		"in between":          {Rule{Code: code, StartsAfter: seconds(1), EndsAfter: seconds(2)}, ".F.."},
		"pool by subnet":      {Rule{Code: code, PerPool: true, SubnetID: "A"}, "FFFF"},
		"pool by tag":         {Rule{Code: code, PerPool: true, Tags: map[string]string{"karpenter.sh/nodepool": "default"}}, "FFFF"},
		"another pool":        {Rule{Code: code, PerPool: true, Zone: "us-east-1b"}, "...."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, client := start(t, Options{})
				makeTemplate(t, s, client, "template")
				subnets := map[string]string{"A": s.subnets[0].id, "B": s.subnets[1].id}
				tc.rule.Action, tc.rule.SubnetID = "CreateFleet", subnets[tc.rule.SubnetID]
				s.SetFault(tc.rule)
				got := ""
				for range len(tc.want) {
					out, err := client.CreateFleet(t.Context(), fleetInput(s, "template", 1, onDemand, onlyM5Large, "us-east-1a"))
					if err != nil || len(launchedIDs(out)) == 0 {
						got += "F"
					} else {
						got += "."
					}
					time.Sleep(time.Second)
				}
				if got != tc.want {
					t.Errorf("got %s, want %s", got, tc.want)
				}
				if fired := s.Faults()[0].Fired; fired != strings.Count(got, "F") {
					t.Errorf("the rule says that it fired %d times, %d calls failed", fired, strings.Count(got, "F"))
				}
			})
		})
	}
}

func TestPartialFleet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, client := start(t, Options{})
		makeTemplate(t, s, client, "template")
		s.SetFault(Rule{Action: "CreateFleet", PerPool: true, PoolLimit: 2, Code: "InsufficientInstanceCapacity"})
		out, err := client.CreateFleet(t.Context(), fleetInput(s, "template", 5, onDemand, onlyM5Large, "us-east-1a", "us-east-1b"))
		if err != nil {
			t.Fatal(err)
		}
		if ids := launchedIDs(out); len(ids) != 4 || len(out.Errors) != 2 {
			t.Errorf("got %d instances and %d errors, want 4 and 2", len(ids), len(out.Errors))
		}
		calls := s.Calls()
		want := []PoolError{
			{InstanceType: "m5.large", Zone: "us-east-1a", CapacityType: onDemand, SubnetID: s.subnets[0].id, Code: "InsufficientInstanceCapacity"},
			{InstanceType: "m5.large", Zone: "us-east-1b", CapacityType: onDemand, SubnetID: s.subnets[1].id, Code: "InsufficientInstanceCapacity"},
		}
		if diff := cmp.Diff(want, calls[len(calls)-1].PoolErrors); diff != "" {
			t.Errorf("the log's pool errors (-want +got):\n%s", diff)
		}
	})
}

func TestEffectsOnCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, client := start(t, Options{})
		makeTemplate(t, s, client, "template")
		first, second := launchOne(t, s, client, "template"), launchOne(t, s, client, "template")

		s.SetFault(Rule{Action: "DescribeInstances", OmitInstances: true, InstanceID: first})
		s.SetFault(Rule{Action: "TerminateInstances", InstanceID: first, Code: "OperationNotPermitted"})
		s.SetFault(Rule{Action: "CreateFleet", FailAfter: true, Code: "InternalError", Times: 1})
		s.SetFault(Rule{Action: "DescribeSubnets", DryRunSucceeds: true})
		s.SetFault(Rule{Action: "DescribeImages", EmptyReply: true})

		out, err := client.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{})
		if err != nil || len(out.Reservations) != 1 || *out.Reservations[0].Instances[0].InstanceId != second {
			t.Errorf("describing with a gap: got %v, %v", out, err)
		}
		if _, err := client.TerminateInstances(t.Context(), &ec2.TerminateInstancesInput{InstanceIds: []string{second}}); err != nil {
			t.Errorf("terminating the other: %v", err)
		}
		if _, err := client.TerminateInstances(t.Context(), &ec2.TerminateInstancesInput{InstanceIds: []string{first}}); errorCode(err) != "OperationNotPermitted" {
			t.Errorf("terminating the protected one: %v", err)
		}
		if _, err := client.CreateFleet(t.Context(), fleetInput(s, "template", 1, onDemand, onlyM5Large)); errorCode(err) != "InternalError" || len(s.Instances()) != 3 {
			t.Errorf("a call that fails after acting: %v, %d instances, want 3", err, len(s.Instances()))
		}
		if _, err := client.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{DryRun: aws.Bool(true)}); err != nil {
			t.Errorf("a dry run that succeeds: %v", err)
		}
		images, err := client.DescribeImages(t.Context(), &ec2.DescribeImagesInput{})
		if err != nil || len(images.Images) != 0 {
			t.Errorf("an empty reply: %d images, %v", len(images.Images), err)
		}

		s.DeleteFault("")
		s.SetFault(Rule{Action: "CreateFleet", DeleteTemplates: true, Times: 1})
		if _, err := client.CreateFleet(t.Context(), fleetInput(s, "template", 1, onDemand, onlyM5Large)); errorCode(err) != "InvalidLaunchTemplateName.NotFoundException" {
			t.Errorf("a template that vanished: %v", err)
		}
	})
}

func TestDamagedPrices(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, client := start(t, Options{})
		prices := pricing.NewFromConfig(s.AWSConfig("AKTEST"))
		input := &pricing.GetProductsInput{ServiceCode: aws.String("AmazonEC2"), MaxResults: aws.Int32(1)}
		s.SetFault(Rule{CorruptPrices: true})
		out, err := prices.GetProducts(t.Context(), input)
		if err != nil || len(out.PriceList) != 1 || !strings.Contains(out.PriceList[0], `"USD":"NaN"`) {
			t.Errorf("got %v, %v", out.PriceList, err)
		}
		spotPrices, err := client.DescribeSpotPriceHistory(t.Context(), &ec2.DescribeSpotPriceHistoryInput{MaxResults: aws.Int32(1)})
		if err != nil || *spotPrices.SpotPriceHistory[0].SpotPrice != "NaN" {
			t.Errorf("got %v, %v", spotPrices.SpotPriceHistory, err)
		}
		s.SetFault(Rule{Service: "pricing", EmptyReply: true})
		if out, err = prices.GetProducts(t.Context(), input); err != nil || len(out.PriceList) != 0 || out.NextToken != nil {
			t.Errorf("an empty price list: got %v, %v", out, err)
		}
	})
}

func TestWrongMachines(t *testing.T) {
	t.Parallel()
	own := func(id string) string { return "aws:///us-east-1a/" + id }
	cases := map[string]struct {
		rule           Rule
		wantNoNode     bool
		wantProvider   func(string) string
		wantTaints     int
		wantPoolLabel  bool
		wantMemoryLess bool
		wantReason     string
	}{
		"well":           {rule: Rule{}, wantProvider: own, wantTaints: 1, wantPoolLabel: true},
		"without taints": {rule: Rule{Action: "Join", Machine: MachineFault{WithoutTaints: true}}, wantProvider: own, wantPoolLabel: true},
		"without labels": {rule: Rule{Action: "Join", Machine: MachineFault{WithoutLabels: true}}, wantProvider: own, wantTaints: 1},
		"another provider id": {
			rule:         Rule{Action: "Join", Machine: MachineFault{ProviderID: "aws:///us-east-1a/i-0"}},
			wantProvider: func(string) string { return "aws:///us-east-1a/i-0" }, wantTaints: 1, wantPoolLabel: true,
		},
		"smaller":        {rule: Rule{Action: "Join", Machine: MachineFault{Allocatable: map[string]string{"memory": "-0.2"}}}, wantProvider: own, wantTaints: 1, wantPoolLabel: true, wantMemoryLess: true},
		"dies at once":   {rule: Rule{Action: "Boot", Machine: MachineFault{Die: true}}, wantNoNode: true, wantReason: "Client.InternalError"},
		"never boots":    {rule: Rule{Action: "Boot", DropRequest: true}, wantNoNode: true},
		"never joins":    {rule: Rule{Action: "Join", DropRequest: true}, wantNoNode: true},
		"of another tag": {rule: Rule{Action: "Join", DropRequest: true, Tags: map[string]string{"karpenter.sh/nodepool": "x"}}, wantProvider: own, wantTaints: 1, wantPoolLabel: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				cluster := fake.NewClientset()
				s, client := start(t, Options{NodeClient: joins(cluster)})
				makeTemplate(t, s, client, "template")
				tc.rule.Service = "node"
				if tc.rule.Action != "" {
					s.SetFault(tc.rule)
				}
				out, err := client.CreateFleet(t.Context(), fleetInput(s, "template", 1, onDemand, onlyM5Large, "us-east-1a"))
				if err != nil {
					t.Fatal(err)
				}
				before := maps.Clone(s.Instances()[0].Allocatable)
				time.Sleep(10 * time.Second)
				id := launchedIDs(out)[0]
				described, err := client.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{InstanceIds: []string{id}})
				if err != nil {
					t.Fatal(err)
				}
				reason := ""
				if in := described.Reservations[0].Instances[0]; in.StateReason != nil {
					reason = *in.StateReason.Code
				}
				if reason != tc.wantReason {
					t.Errorf("state reason is %q, want %q", reason, tc.wantReason)
				}
				nodes := listNodes(t, cluster)
				if tc.wantNoNode != (len(nodes) == 0) {
					t.Fatalf("got %d nodes", len(nodes))
				}
				if tc.wantNoNode {
					return
				}
				node := nodes[0]
				if got, want := node.Spec.ProviderID, tc.wantProvider(id); got != want {
					t.Errorf("provider id is %s, want %s", got, want)
				}
				own := slices.DeleteFunc(node.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == corev1.TaintNodeNotReady })
				if len(own) != tc.wantTaints || (node.Labels["karpenter.sh/nodepool"] == "default") != tc.wantPoolLabel {
					t.Errorf("taints are %v, labels %v", own, node.Labels)
				}
				if less := s.Instances()[0].Allocatable["memory"] != before["memory"]; less != tc.wantMemoryLess {
					t.Errorf("memory was %s, is %s", before["memory"], s.Instances()[0].Allocatable["memory"])
				}
			})
		})
	}
}

func TestEveryActionKnowsItsKeys(t *testing.T) {
	t.Parallel()
	for name := range actions {
		if requestKeys[name] == nil {
			t.Errorf("no request keys of %s", name)
		}
	}
	for name := range requestKeys {
		if actions[name] == nil {
			t.Errorf("request keys of %s, which is not served", name)
		}
	}
}

func TestUnknownKeysAreRefused(t *testing.T) {
	t.Parallel()
	s, client := start(t, Options{})
	_, err := client.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{Filters: []types.Filter{filterOf("vpc-id", s.vpc)}})
	if err != nil {
		t.Errorf("known keys: %v", err)
	}
	_, err = client.RebootInstances(t.Context(), &ec2.RebootInstancesInput{InstanceIds: []string{"i-0"}})
	if code := errorCode(err); code != "InvalidInstanceID.Malformed" {
		t.Errorf("known keys: %v", err)
	}
	_, err = client.TerminateInstances(t.Context(), &ec2.TerminateInstancesInput{InstanceIds: []string{"i-0"}, Force: aws.Bool(true)})
	if code := errorCode(err); code != "UnknownParameter" {
		t.Errorf("an unknown key: %v", err)
	}
}

func TestRatesCanBeSet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		settings := DefaultSettings()
		settings.Throttle, settings.Rates = true, map[string]Rate{"DescribeImages": {2, 1}}
		s, client := start(t, Options{Settings: &settings})
		refused := 0
		for range 5 {
			if _, err := client.DescribeImages(t.Context(), &ec2.DescribeImagesInput{MaxResults: aws.Int32(10)}); errorCode(err) == "RequestLimitExceeded" {
				refused++
			}
		}
		if refused != 3 {
			t.Errorf("%d of 5 were refused, want 3", refused)
		}
		want := map[string]Rate{"DescribeImages": {2, 1}, "CreateFleet": {50, 5}, "CreateTags": {100, 10}, "DescribeInstances": {100, 20}, "RunInstances": {5, 2}}
		for action, rate := range want {
			if got := s.Rates()[action]; got != rate {
				t.Errorf("%s has %v, want %v", action, got, rate)
			}
		}
	})
}

func TestNonsenseFaultsAreRefused(t *testing.T) {
	t.Parallel()
	cases := map[string]Rule{
		"a limit of calls":     {PoolLimit: 2, Code: "X"},
		"failing without code": {FailAfter: true},
		"probability":          {Probability: 2},
		"share":                {Machine: MachineFault{Allocatable: map[string]string{"memory": "much"}}},
	}
	for name, rule := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := rule.validate(); err == nil {
				t.Error("accepted")
			}
		})
	}
}
