// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/fakeaws"
)

// Leadership that is lost while a launch is under way stops it at the next call that would change something: between
// CreateLaunchTemplate and CreateFleet, or while it waits for its turn.
func TestNothingIsChangedAfterLeadership(t *testing.T) {
	errLost := errors.New("the lease is somebody else's")
	for name, tt := range map[string]struct {
		delayed string
		want    map[string]int // calls
	}{
		"lost before anything":          {"", map[string]int{"CreateLaunchTemplate": 0, "CreateFleet": 0}},
		"lost while a template is made": {"CreateLaunchTemplate", map[string]int{"CreateLaunchTemplate": 1, "CreateFleet": 0}},
		"lost while a fleet is made":    {"CreateFleet", map[string]int{"CreateLaunchTemplate": 1, "CreateFleet": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud(t)
				class := c.ready(t, demoClass())
				options := c.options(t, class, onDemand, "m5.large")
				lost := time.Now()
				if tt.delayed != "" {
					lost = lost.Add(time.Second)
					c.aws.SetFault(fakeaws.Rule{Action: tt.delayed, Delay: metav1.Duration{Duration: 3 * time.Second}})
				}
				c.limiter.leading = func() error {
					if time.Now().Before(lost) {
						return nil
					}
					return errLost
				}
				_, err := c.Launch(t.Context(), launchRequest(class, "token", options))
				if tt.delayed != "CreateFleet" && !errors.Is(err, errLost) {
					t.Errorf("error = %v, want %v", err, errLost)
				}
				for action, want := range tt.want {
					if got := c.calls(action); got != want {
						t.Errorf("%d × %s, want %d", got, action, want)
					}
				}
				c.ready(t, demoClass()) // reading goes on
			})
		})
	}
}
