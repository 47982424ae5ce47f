// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/fakeaws"
	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
)

// someInstances launches that many and forgets the calls so far.
func (c *cloud) someInstances(t *testing.T, n int) []cloudprovider.Instance {
	t.Helper()
	class := c.ready(t, demoClass())
	req := launchRequest(class, "some", c.options(t, class, onDemand, "m5.large"))
	req.Count, req.Claims = n, make([]string, n)
	instances := c.launch(t, req).Instances
	if len(instances) != n {
		t.Fatalf("launched %d instances, want %d", len(instances), n)
	}
	return instances
}

// all asks for every id at once and returns the errors in their order.
func all(ids []string, ask func(id string) error) []error {
	errs := make([]error, len(ids))
	var asking sync.WaitGroup
	for i, id := range ids {
		asking.Go(func() { errs[i] = ask(id) })
	}
	asking.Wait()
	return errs
}

// B71: two callers ask about one instance in one window, and somebody about one that does not exist: everybody is
// answered, with few calls.
func TestQuestionsAboutInstancesAreMerged(t *testing.T) {
	const unknown = "aws:///us-east-1a/i-0123456789abcdef0"
	throttled := fakeaws.Rule{Action: "DescribeInstances", Code: "RequestLimitExceeded", Status: 503}
	cases := map[string]struct {
		ids       func([]cloudprovider.Instance) []string
		fault     *fakeaws.Rule
		want      map[string]error // else nil
		wantCalls int
	}{
		"one twice": {
			ids:       func(i []cloudprovider.Instance) []string { return []string{i[0].ProviderID, i[0].ProviderID} },
			wantCalls: 1,
		},
		"one twice among others": {
			ids: func(i []cloudprovider.Instance) []string {
				return []string{i[0].ProviderID, i[1].ProviderID, i[0].ProviderID, i[2].ProviderID}
			},
			wantCalls: 1,
		},
		"unknown, twice": {
			ids:       func([]cloudprovider.Instance) []string { return []string{unknown, unknown} },
			want:      map[string]error{unknown: cloudprovider.ErrInstanceNotFound},
			wantCalls: 1,
		},
		"unknown among others": {
			ids: func(i []cloudprovider.Instance) []string {
				return []string{i[0].ProviderID, unknown, i[1].ProviderID}
			},
			want:      map[string]error{unknown: cloudprovider.ErrInstanceNotFound},
			wantCalls: 4,
		},
		"throttled: nobody is asked about alone": {
			ids: func(i []cloudprovider.Instance) []string {
				return []string{i[0].ProviderID, i[1].ProviderID, i[2].ProviderID}
			},
			fault:     &throttled,
			wantCalls: 3, // the SDK's tries of one call
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud(t)
				ids := tc.ids(c.someInstances(t, 3))
				if tc.fault != nil {
					c.aws.SetFault(*tc.fault)
				}
				errs := all(ids, func(id string) error {
					got, err := c.Get(t.Context(), id)
					if err == nil && got.ProviderID != id {
						return fmt.Errorf("asked for %s, got %s", id, got.ProviderID)
					}
					return err
				})
				for i, err := range errs {
					if tc.fault != nil && err != nil && strings.Contains(err.Error(), tc.fault.Code) {
						continue
					}
					if !errors.Is(err, tc.want[ids[i]]) {
						t.Errorf("Get(%s): %v, want %v", ids[i], err, tc.want[ids[i]])
					}
				}
				if n := c.calls("DescribeInstances"); tc.fault == nil && n != tc.wantCalls || n > 10 {
					t.Errorf("%d calls, want %d", n, tc.wantCalls)
				}
			})
		})
	}
}

// A caller who gives up does not take the answer from the others.
func TestACallerWhoGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(t)
		id := c.someInstances(t, 1)[0].ProviderID
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		first := make(chan error, 1)
		go func() {
			_, err := c.Get(ctx, id)
			first <- err
		}()
		synctest.Wait()
		if _, err := c.Get(t.Context(), id); err != nil {
			t.Errorf("Get by the second: %v", err)
		}
		if err := <-first; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Get by the first: %v", err)
		}
	})
}

func TestTerminationsAreMerged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(t)
		var ids []string
		for _, instance := range c.someInstances(t, 700) {
			ids = append(ids, instance.ProviderID)
		}
		for i, err := range all(ids, func(id string) error { return c.Terminate(t.Context(), id) }) {
			if err != nil {
				t.Fatalf("Terminate(%s): %v", ids[i], err)
			}
		}
		if n := c.calls("TerminateInstances"); n != 2 {
			t.Errorf("%d calls for 700 instances, want 2", n)
		}
		for _, i := range c.aws.Instances() {
			if i.State != "shutting-down" && i.State != "terminated" {
				t.Errorf("%s is %s", i.ID, i.State)
			}
		}
	})
}

// One that is protected, or gone, does not keep the others.
func TestTerminationOfTheOthers(t *testing.T) {
	for name, code := range map[string]string{"protected": "OperationNotPermitted", "gone": "InvalidInstanceID.NotFound"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud(t)
				instances := c.someInstances(t, 3)
				c.aws.SetFault(fakeaws.Rule{Action: "TerminateInstances", Code: code, Times: 1})
				ids := []string{instances[0].ProviderID, instances[1].ProviderID, instances[2].ProviderID}
				for i, err := range all(ids, func(id string) error { return c.Terminate(t.Context(), id) }) {
					if err != nil {
						t.Errorf("Terminate(%s): %v", ids[i], err)
					}
				}
			})
		})
	}
}

// Karpenter's rule: what users have set stays.
func TestTagWritesWhatIsLacking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(t)
		class := demoClass()
		class.Spec.Tags = map[string]string{"Name": "my-nodes"}
		class = c.ready(t, class)
		id := c.launch(t, launchRequest(class, "g1-1", c.options(t, class, onDemand, "m5.large"))).Instances[0].ProviderID
		tags := map[string]string{"Name": "ip-10-0-0-4.ec2.internal", "karpenter.sh/nodeclaim": "default-abcde", "eks:eks-cluster-name": "demo"}
		for range 2 {
			if err := c.Tag(t.Context(), id, tags); err != nil {
				t.Fatal(err)
			}
		}
		got := c.aws.Instances()[0].Tags
		if got["Name"] != "my-nodes" || got["karpenter.sh/nodeclaim"] != "default-abcde" {
			t.Errorf("tags are %v", got)
		}
		if n := c.calls("CreateTags"); n != 1 {
			t.Errorf("%d calls of CreateTags, want 1: the second had nothing to add", n)
		}
		for _, call := range c.aws.Calls() {
			if call.Action == "CreateTags" && call.Params["Tag.1.Key"] != "karpenter.sh/nodeclaim" || call.Params["Tag.2.Key"] != "" && call.Action == "CreateTags" {
				t.Errorf("CreateTags with %v, want only what is lacking", call.Params)
			}
		}
	})
}
