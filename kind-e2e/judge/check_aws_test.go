// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"testing"
	"time"
)

func TestUnknownParameter(t *testing.T) {
	t.Parallel()
	testInvariant(t, "unknown-parameter", map[string]invariantCase{
		"none": {run: goodRun},
		"one": {
			run: func(s *scenario) {
				s.call(Call{Service: "ec2", Action: "CreateFleet", Status: 400, Code: "UnknownParameter", Params: map[string]any{"Type": "instant", "Colour": "red"}})
				s.call(Call{Service: "ec2", Action: "CreateFleet", Status: 400, Code: "InvalidParameterValue"})
			},
			want: []string{"CreateFleet: UnknownParameter: the fake does not serve ec2/CreateFleet with Colour, Type"},
		},
		"an action": {
			run: func(s *scenario) {
				s.call(Call{Service: "ec2", Action: "RunScheduledInstances", Code: "InvalidAction"})
			},
			want: []string{"RunScheduledInstances: InvalidAction: the fake does not serve ec2/RunScheduledInstances with "},
		},
	})
}

func fleetCall(token string, n int, more ...func(*Call)) Call {
	c := Call{Service: "ec2", Action: "CreateFleet", Status: 200, AccessKey: "A", Params: map[string]any{
		"ClientToken": token, "TargetCapacitySpecification.TotalTargetCapacity": fmt.Sprint(n),
		"TargetCapacitySpecification.DefaultTargetCapacityType": "spot",
	}}
	for _, change := range more {
		change(&c)
	}
	return c
}

func TestTokenLaunchesOnce(t *testing.T) {
	t.Parallel()
	of := func(id, token string) Instance { return Instance{ID: id, ClientToken: token} }
	testInvariant(t, "token-launches-once", map[string]invariantCase{
		"as many as asked for": {run: func(s *scenario) {
			s.call(fleetCall("t", 2)).call(fleetCall("t", 2)).instance(of("i-1", "t")).instance(of("i-2", "t"))
			s.call(fleetCall("u", 1)).instance(of("i-3", "u"))
		}},
		"one more, at the replay": {
			run: func(s *scenario) {
				s.call(fleetCall("t", 1)).instance(of("i-1", "t")).call(fleetCall("t", 1)).instance(of("i-2", "t")).instance(of("i-3", "t"))
			},
			want: []string{"t: launched i-2 as well, and asked for 1"},
		},
		"used for another request": {
			run: func(s *scenario) {
				s.call(fleetCall("t", 1))
				s.call(fleetCall("t", 2, func(c *Call) { c.Status, c.Code = 400, "IdempotentParameterMismatch" }))
			},
			want: []string{`t: the token of CreateFleet was used before, for another request: TargetCapacitySpecification.TotalTargetCapacity was "1", is "2" (1 differ)`},
		},
	})
}

func TestRequestRate(t *testing.T) {
	t.Parallel()
	calls := func(n int, every time.Duration) func(*scenario) {
		return func(s *scenario) {
			s.ObserveRates(map[string]Rate{"CreateFleet": {5, 1}})
			for i := range n {
				at := Stamp{epoch.Add(time.Duration(i) * every)}
				s.ObserveCalls([]Call{{Seq: int64(i + 1), Time: at, Service: "ec2", Action: "CreateFleet"}})
			}
		}
	}
	testInvariant(t, "request-rate", map[string]invariantCase{
		"a burst":      {run: calls(5, 0)},
		"at the rate":  {run: calls(50, time.Second)},
		"one too many": {run: calls(6, 0), want: []string{"CreateFleet: called faster than its bucket of 5 allows, which refills with 1/s"}},
		"too fast":     {run: calls(50, time.Second/2), want: []string{"CreateFleet: called faster than its bucket of 5 allows, which refills with 1/s"}},
	})
}

func TestRefusedPool(t *testing.T) {
	t.Parallel()
	into := func(instanceType, zone, subnet string) func(*Call) {
		return func(c *Call) {
			prefix := "LaunchTemplateConfigs.1.Overrides.1."
			c.Params[prefix+"InstanceType"], c.Params[prefix+"AvailabilityZone"], c.Params[prefix+"SubnetId"] = instanceType, zone, subnet
		}
	}
	refusedWith := func(code string) func(*Call) {
		return func(c *Call) {
			c.PoolErrors = []PoolError{{InstanceType: "m5.large", Zone: "a", CapacityType: "spot", SubnetID: "subnet-1", Code: code}}
		}
	}
	large := into("m5.large", "a", "subnet-1")
	const ice = "InsufficientInstanceCapacity"
	testInvariant(t, "refused-pool", map[string]invariantCase{
		"another pool": {run: func(s *scenario) {
			s.call(fleetCall("1", 1, large, refusedWith(ice))).wait(time.Minute).call(fleetCall("2", 1, into("m5.large", "b", "subnet-2")))
		}},
		"as another capacity type": {run: func(s *scenario) {
			s.call(fleetCall("1", 1, large, refusedWith(ice))).wait(time.Minute)
			s.call(fleetCall("2", 1, large, func(c *Call) { c.Params["TargetCapacitySpecification.DefaultTargetCapacityType"] = "on-demand" }))
		}},
		"after its time": {run: func(s *scenario) {
			s.call(fleetCall("1", 1, large, refusedWith(ice))).wait(3 * time.Minute).call(fleetCall("2", 1, large))
		}},
		"before the reply": {run: func(s *scenario) {
			s.call(fleetCall("1", 1, large, refusedWith(ice), func(c *Call) { c.DurationMS = 30000 })).wait(5 * time.Second).call(fleetCall("2", 1, large))
		}},
		"the same token": {run: func(s *scenario) {
			s.call(fleetCall("1", 1, large, refusedWith(ice))).wait(time.Minute).call(fleetCall("1", 1, large))
		}},
		"another client": {run: func(s *scenario) {
			s.call(fleetCall("1", 1, large, refusedWith(ice))).wait(time.Minute).call(fleetCall("2", 1, large, func(c *Call) { c.AccessKey = "B" }))
		}},
		"no code of a pool": {run: func(s *scenario) {
			s.call(fleetCall("1", 1, large, refusedWith("InvalidParameterValue"))).wait(time.Minute).call(fleetCall("2", 1, large))
		}},
		"too early": {
			run: func(s *scenario) {
				s.call(fleetCall("1", 1, large, refusedWith(ice))).wait(time.Minute).call(fleetCall("2", 1, large))
			},
			want: []string{"m5.large/a/spot: asked for again 1m1s after InsufficientInstanceCapacity (1 refused pools in one launch)"},
		},
		"a full subnet, with another type": {
			run: func(s *scenario) {
				s.call(fleetCall("1", 1, large, refusedWith("InsufficientFreeAddressesInSubnet"))).wait(30 * time.Second).call(fleetCall("2", 1, into("c5.large", "a", "subnet-1")))
			},
			want: []string{"subnet-1: asked for again 31s after InsufficientFreeAddressesInSubnet (1 refused pools in one launch)"},
		},
	})
}

func TestInstanceTags(t *testing.T) {
	t.Parallel()
	without := func(keys ...string) func(*scenario) {
		return func(s *scenario) {
			i := instanceOf("default-a", "n1")
			for _, key := range keys {
				delete(i.Tags, key)
			}
			s.instance(i)
		}
	}
	testInvariant(t, "instance-tags", map[string]invariantCase{
		"all":     {run: without()},
		"no pool": {run: without("karpenter.sh/nodepool"), want: []string{"i-n1: lacks the tags karpenter.sh/nodepool"}},
		"no cluster": {
			run:  without("kubernetes.io/cluster/demo", "eks:eks-cluster-name"),
			want: []string{"i-n1: lacks the tags eks:eks-cluster-name, kubernetes.io/cluster/…=owned"},
		},
		"the claim's tag comes later": {run: without("karpenter.sh/nodeclaim")},
	})
}

func TestQueueMessages(t *testing.T) {
	t.Parallel()
	counts := func(c QueueCounts) func(*scenario) {
		return func(s *scenario) { s.ObserveQueues(map[string]QueueCounts{"events": c}) }
	}
	testInvariant(t, "queue-messages", map[string]invariantCase{
		"all deleted":  {run: counts(QueueCounts{Deleted: 7})},
		"some visible": {run: counts(QueueCounts{Deleted: 7, Visible: 3})},
		"one lost":     {run: counts(QueueCounts{InFlight: 1}), want: []string{"events: 1 messages were received and are neither deleted nor visible"}},
	})
}
