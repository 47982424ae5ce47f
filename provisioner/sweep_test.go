// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
)

func machine(id, state string, age time.Duration) cloudprovider.Instance {
	return cloudprovider.Instance{ProviderID: "aws:///a/i-" + id, State: state, LaunchTime: time.Now().Add(-age)}
}

func TestSweepEndsWhatNobodyHas(t *testing.T) {
	t.Parallel()
	p, _ := newShell(t, nil)
	testClaim(p, "c", testPod("a"))
	handOver(p, "c")
	testClaim(p, "d", testPod("b"))
	p.foreign["aws:///a/i-static"] = "static"
	launching := machine("d", "pending", time.Hour)
	launching.Tags = map[string]string{"jit-scheduler.io/launch-group": "group-d"}
	cloud := &machines{listed: []cloudprovider.Instance{
		machine("c", "running", time.Hour), machine("static", "running", time.Hour), launching,
		machine("young", "running", time.Minute), machine("going", "shutting-down", time.Hour),
		machine("gone", "running", time.Hour), machine("lost", "running", time.Hour),
	}}
	p.Cloud = cloud
	cloud.vanish = "aws:///a/i-gone" // since it was listed
	if err := p.sweepOnce(t.Context()); err != nil {
		t.Errorf("sweepOnce: %v", err)
	}
	if want := []string{"aws:///a/i-lost"}; !slices.Equal(cloud.terminated, want) || !cloud.swept {
		t.Errorf("terminated %v, templates swept: %t; want %v, true", cloud.terminated, cloud.swept, want)
	}
}

// A list that lacks a machine is no proof: believed, it would take the node from under running pods.
func TestAMachineIsGoneWhenTheCloudSaysSoByItsID(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		age    time.Duration
		hidden bool
		want   bool
	}{
		"gone":                        {age: time.Hour, want: true},
		"not listed, but there":       {age: time.Hour, hidden: true},
		"too young to be listed":      {age: time.Second},
		"too young, and there anyway": {age: time.Second, hidden: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				cloud := &machines{}
				p, _ := newShell(t, cloud)
				testClaim(p, "c", testPod("a"))
				handOver(p, "c")
				time.Sleep(tc.age)
				if tc.hidden {
					cloud.hidden = append(cloud.hidden, machine("c", "running", tc.age))
				}
				if err := p.sweepOnce(t.Context()); err != nil {
					t.Errorf("sweepOnce: %v", err)
				}
				if c, _ := p.state.Claim("c"); c.Ending != tc.want {
					t.Errorf("ending: %t, want %t", c.Ending, tc.want)
				}
			})
		})
	}
}
