// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/fakeaws"
	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
)

// In every window of time no more calls go out than the documented bucket holds.
func TestLimiterKeepsToTheBuckets(t *testing.T) {
	for operation, limit := range map[string]rate{"CreateFleet": {50, 5}, "DescribeInstances": {100, 20}, "CreateTags": {100, 10}, "TerminateInstances": {100, 5}} {
		t.Run(operation, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLimiter(nil)
				var mu sync.Mutex
				var sent []time.Time
				var calls sync.WaitGroup
				const n = 400
				for range n {
					calls.Go(func() {
						if err := l.wait(t.Context(), "EC2", operation); err != nil {
							t.Error(err)
						}
						mu.Lock()
						defer mu.Unlock()
						sent = append(sent, time.Now())
					})
				}
				calls.Wait()
				slices.SortFunc(sent, time.Time.Compare)
				for i := range sent {
					for j := i; j < len(sent); j++ {
						if window := sent[j].Sub(sent[i]).Seconds(); float64(j-i+1) > limit.size+limit.refill*window+1 {
							t.Fatalf("%d calls within %.1f s", j-i+1, window)
						}
					}
				}
				if took, most := sent[n-1].Sub(sent[0]).Seconds(), (n-limit.size)/limit.refill*1.1+2; took > most {
					t.Errorf("%d calls took %.1f s, want at most %.1f", n, took, most)
				}
			})
		})
	}
}

func TestLimiterLetsLaunchesGoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(nil)
		for range 47 { // what the bucket holds
			if err := l.wait(t.Context(), "EC2", "CreateLaunchTemplate"); err != nil {
				t.Fatal(err)
			}
			if err := l.wait(t.Context(), "EC2", "DeleteLaunchTemplate"); err != nil {
				t.Fatal(err)
			}
		}
		var mu sync.Mutex
		var order []string
		var calls sync.WaitGroup
		ask := func(operation string) {
			calls.Go(func() {
				if err := l.wait(t.Context(), "EC2", operation); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				order = append(order, operation)
			})
		}
		ask("CreateLaunchTemplate")
		synctest.Wait()
		l.throttled("EC2", "CreateLaunchTemplate")
		for range 5 {
			ask("DescribeInstances")
		}
		calls.Wait()
		if order[0] != "CreateLaunchTemplate" {
			t.Errorf("order %v: a launch that EC2 throttled goes before describes", order)
		}
	})
}

func TestLimiterLearns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(nil)
		next := func() time.Duration {
			start := time.Now()
			if err := l.wait(t.Context(), "EC2", "CreateFleet"); err != nil {
				t.Fatal(err)
			}
			return time.Since(start)
		}
		if d := next(); d != 0 {
			t.Errorf("the first call waits %v", d)
		}
		l.throttled("EC2", "CreateFleet")
		first := next()
		for range 6 {
			l.throttled("EC2", "CreateFleet")
		}
		if second := next(); first < 300*time.Millisecond || second < 4*first || second > 6*time.Second {
			t.Errorf("after one throttled call the next waits %v, after seven %v", first, second)
		}
		time.Sleep(2 * time.Minute)
		start := time.Now()
		for range 60 {
			next()
		}
		if took := time.Since(start); took > 4*time.Second {
			t.Errorf("two minutes later 60 calls take %v: the rate has not recovered", took)
		}
	})
}

func TestLimiterGivesUpInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(nil)
		for range 47 {
			if err := l.wait(t.Context(), "EC2", "CreateFleet"); err != nil {
				t.Fatal(err)
			}
		}
		for range 20 {
			l.throttled("EC2", "CreateFleet")
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		start := time.Now()
		var late error
		for late == nil {
			late = l.waitBefore(ctx, "EC2", "CreateFleet", 30*time.Second)
		}
		if !errors.Is(late, errNotSent) || time.Since(start) > 5*time.Second {
			t.Errorf("after %v: %v, want errNotSent while half of an attempt's time is left", time.Since(start), late)
		}
		if n := len(l.buckets["EC2/CreateFleet"].queue); n != 0 || l.launches != 0 {
			t.Errorf("%d calls still wait, %d launches counted", n, l.launches)
		}
	})
}

// Many launches at once over a fake that holds calls to EC2's buckets: none is throttled, none is lost.
func TestBurstIsNotThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		settings := fakeaws.DefaultSettings()
		settings.Throttle = true
		c := newCloud(t, func(o *fakeaws.Options) { o.Settings = &settings })
		class := c.ready(t, demoClass())
		options := c.options(t, class, onDemand, "m5.large")
		var launches sync.WaitGroup
		for i := range 300 {
			launches.Go(func() {
				for {
					_, err := c.Launch(t.Context(), launchRequest(class, fmt.Sprint("burst-", i), options))
					if err == nil {
						return
					}
					if failure := wantLaunchError(t, err); failure.Failure != cloudprovider.Throttled || !errors.Is(err, errNotSent) {
						t.Errorf("launch %d: %v", i, err)
						return
					}
				}
			})
		}
		launches.Wait()
		for _, call := range c.aws.Calls() {
			if call.Code == "RequestLimitExceeded" {
				t.Fatalf("%s was throttled", call.Action)
			}
		}
		if n := len(c.aws.Instances()); n != 300 {
			t.Errorf("%d instances, want 300", n)
		}
	})
}
