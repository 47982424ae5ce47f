// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"context"
	"errors"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

func TestCallFaults(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		rule       Rule
		wantCode   string
		wantReset  bool
		wantTook   time.Duration
		wantLaunch int
		wantFired  int
		wantStatus int
	}{
		"error":              {rule: Rule{Action: "CreateFleet", Code: "RequestLimitExceeded"}, wantCode: "RequestLimitExceeded", wantFired: 1, wantStatus: 503},
		"status of the rule": {rule: Rule{Action: "CreateFleet", Code: "Odd", Status: 418}, wantCode: "Odd", wantFired: 1, wantStatus: 418},
		"delay":              {rule: Rule{Action: "CreateFleet", Delay: seconds(30)}, wantTook: 30 * time.Second, wantLaunch: 1, wantFired: 1, wantStatus: 200},
		"delayed error":      {rule: Rule{Action: "CreateFleet", Delay: seconds(5), Code: "InternalError"}, wantCode: "InternalError", wantTook: 5 * time.Second, wantFired: 1, wantStatus: 500},
		"withheld reply":     {rule: Rule{Action: "CreateFleet", WithholdReply: true}, wantReset: true, wantTook: time.Minute, wantLaunch: 1, wantFired: 1, wantStatus: 200},
		"dropped request":    {rule: Rule{Action: "CreateFleet", DropRequest: true}, wantReset: true, wantFired: 1, wantStatus: 499},
		"another action":     {rule: Rule{Action: "TerminateInstances", Code: "InternalError"}, wantLaunch: 1, wantStatus: 200},
		"another service":    {rule: Rule{Service: "ssm", Code: "InternalError"}, wantLaunch: 1, wantStatus: 200},
		"by type":            {rule: Rule{InstanceType: "m5.large", Code: "Unavailable"}, wantCode: "Unavailable", wantFired: 1, wantStatus: 503},
		"another type":       {rule: Rule{InstanceType: "m5.xlarge", Code: "Unavailable"}, wantLaunch: 1, wantStatus: 200},
		"by zone":            {rule: Rule{Zone: "us-east-1c", Code: "Unavailable"}, wantCode: "Unavailable", wantFired: 1, wantStatus: 503},
		"by capacity type":   {rule: Rule{CapacityType: spot, Code: "Unavailable"}, wantLaunch: 1, wantStatus: 200},
		"by access key":      {rule: Rule{AccessKey: "AKTEST", Code: "AuthFailure"}, wantCode: "AuthFailure", wantFired: 1, wantStatus: 401},
		"another access key": {rule: Rule{AccessKey: "AKOTHER", Code: "AuthFailure"}, wantLaunch: 1, wantStatus: 200},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s, client := start(t, Options{})
				makeTemplate(t, s, client, "template")
				s.SetFault(tc.rule)
				began := time.Now()
				_, err := client.CreateFleet(t.Context(), fleetInput(s, "template", 1, onDemand, onlyM5Large))
				if got := errors.Is(err, syscall.ECONNRESET); got != tc.wantReset {
					t.Errorf("got reset %v, want %v: %v", got, tc.wantReset, err)
				}
				if got := errorCode(err); !tc.wantReset && got != tc.wantCode {
					t.Errorf("got %q, want %q", got, tc.wantCode)
				}
				if took := time.Since(began); took != tc.wantTook {
					t.Errorf("took %v, want %v", took, tc.wantTook)
				}
				if n := len(s.Instances()); n != tc.wantLaunch {
					t.Errorf("got %d instances, want %d", n, tc.wantLaunch)
				}
				if fired := s.Faults()[0].Fired; fired != tc.wantFired {
					t.Errorf("the rule fired %d times, want %d", fired, tc.wantFired)
				}
				calls := s.Calls()
				if last := calls[len(calls)-1]; last.Action != "CreateFleet" || last.Status != tc.wantStatus || last.AccessKey != "AKTEST" || last.Time != began {
					t.Errorf("logged %+v, want CreateFleet of AKTEST with status %d", last, tc.wantStatus)
				}
			})
		})
	}
}

func TestFaultTimesAndOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, client := start(t, Options{})
		s.SetFault(Rule{Action: "DescribeSubnets", Code: "InternalError", Times: 2})
		second := s.SetFault(Rule{Service: "ec2", Code: "Unavailable", Times: 1})
		var got []string
		for range 4 {
			_, err := client.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{})
			got = append(got, errorCode(err))
		}
		// Both rules concern the first call; the one that was set first speaks.
		if want := []string{"InternalError", "InternalError", "", ""}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		for _, rule := range s.Faults() {
			if rule.Fired != rule.Times {
				t.Errorf("rule %s fired %d times, want %d", rule.ID, rule.Fired, rule.Times)
			}
		}
		s.DeleteFault(second)
		if left := s.Faults(); len(left) != 1 || left[0].Code != "InternalError" {
			t.Errorf("left %+v", left)
		}
		s.DeleteFault("")
		if left := s.Faults(); len(left) != 0 {
			t.Errorf("left %+v", left)
		}
	})
}

func TestFaultProbability(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, client := start(t, Options{Seed: 7})
		s.SetFault(Rule{Action: "DescribeSubnets", Code: "InternalError", Probability: 0.3})
		failed := 0
		for range 200 {
			if _, err := client.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{}); err != nil {
				failed++
			}
		}
		if failed < 40 || failed > 80 || s.Faults()[0].Fired != failed {
			t.Errorf("%d of 200 calls failed, the rule says %d, want about 60", failed, s.Faults()[0].Fired)
		}
	})
}

// A reply that is lost is asked for again with the same token: the SDK's own retry finds the instance.
func TestLostReplyAndRetry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := start(t, Options{})
		client := ec2.NewFromConfig(s.AWSConfig("AKTEST"))
		makeTemplate(t, s, client, "template")
		s.SetFault(Rule{Action: "CreateFleet", WithholdReply: true, Times: 1})
		out, err := client.CreateFleet(t.Context(), fleetInput(s, "template", 1, onDemand, onlyM5Large))
		if err != nil {
			t.Fatal(err)
		}
		if all := s.Instances(); len(all) != 1 || all[0].ID != launchedIDs(out)[0] {
			t.Errorf("got %d instances, want the one of the first attempt", len(all))
		}
	})
}

// AWS acts on what it has received, whatever became of the sender.
func TestDelayedCallOutlivesItsClient(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, client := start(t, Options{})
		makeTemplate(t, s, client, "template")
		s.SetFault(Rule{Action: "CreateFleet", Delay: seconds(30)})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if _, err := client.CreateFleet(ctx, fleetInput(s, "template", 1, onDemand, onlyM5Large)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want a deadline", err)
		}
		if n := len(s.Instances()); n != 0 {
			t.Fatalf("launched %d before the delay was over", n)
		}
		time.Sleep(30 * time.Second)
		if n := len(s.Instances()); n != 1 {
			t.Errorf("got %d instances, want 1", n)
		}
	})
}

func TestThrottle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		settings := DefaultSettings()
		settings.Throttle = true
		s, client := start(t, Options{Settings: &settings})
		call := func(n int) (refused int) {
			for range n {
				if _, err := client.CreateLaunchTemplate(t.Context(), &ec2.CreateLaunchTemplateInput{DryRun: aws.Bool(true), LaunchTemplateName: aws.String("name"), LaunchTemplateData: &types.RequestLaunchTemplateData{}}); errorCode(err) == "RequestLimitExceeded" {
					refused++
				}
			}
			return refused
		}
		if got := call(60); got != 10 {
			t.Errorf("60 writes at once: %d refused, want 10", got)
		}
		time.Sleep(2 * time.Second)
		if got := call(15); got != 5 {
			t.Errorf("15 writes two seconds later: %d refused, want 5", got)
		}
		if _, err := client.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{}); err != nil {
			t.Errorf("reads have a bucket of their own: %v", err)
		}
		if got := len(s.Calls()); got != 76 {
			t.Errorf("%d calls logged, want 76", got)
		}
	})
}

func TestClosedServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, client := start(t, Options{})
		makeTemplate(t, s, client, "template")
		launchOne(t, s, client, "template")
		s.Close()
		if _, err := client.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{}); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("got %v, want a reset", err)
		}
	})
}
