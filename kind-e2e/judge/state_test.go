// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestCallsAreAskedAgainUntilAnswered(t *testing.T) {
	t.Parallel()
	s := NewState("jit-scheduler")
	s.ObserveCalls([]Call{{Seq: 1, Status: 200}, {Seq: 2}, {Seq: 3, Status: 200}})
	before := s.View(epoch)
	if got := s.callsSince(); got != 1 {
		t.Errorf("asks since %d, want 1", got)
	}
	s.ObserveCalls([]Call{{Seq: 2, Status: 500, Code: "InternalError"}, {Seq: 3, Status: 200}, {Seq: 4, Status: 200}})
	if got := s.callsSince(); got != 4 {
		t.Errorf("asks since %d, want 4", got)
	}
	want := []Call{{Seq: 1, Status: 200}, {Seq: 2, Status: 500, Code: "InternalError"}, {Seq: 3, Status: 200}, {Seq: 4, Status: 200}}
	if diff := cmp.Diff(want, s.calls, cmp.Comparer(func(a, b Stamp) bool { return a.Equal(b.Time) })); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if before.Calls[1].Status != 0 || len(before.Calls) != 3 {
		t.Errorf("an old view changed: %+v", before.Calls)
	}
}

func TestInstancesAndTagsAreRemembered(t *testing.T) {
	t.Parallel()
	s := newScenario()
	s.instance(instanceOf("a", "n1"))
	s.ObserveInstances([]Instance{{ID: "i-n1", State: "terminated"}})
	s.ObserveInstances(nil)
	got := s.View(s.now).Instances
	if len(got) != 1 || !got[0].Terminated() || got[0].Tags["karpenter.sh/nodeclaim"] != "a" {
		t.Errorf("instances are %+v", got)
	}
}

func TestView(t *testing.T) {
	t.Parallel()
	s := newScenario()
	p := pod("p")
	s.pod(p).event(p, "Nominated", "on NodeClaim default-a, m5.xlarge").node(node("n1")).node(node("n2", notReady))
	s.claim(claimOn("a", "n1")).instance(instanceOf("a", "n1")).wait(time.Second)
	v := s.View(s.now)
	if v.NothingLeft() || v.USDPerHour() != 0.192 || v.ReadyNodes(true) != 1 || v.ProvisionedNodes() != 2 {
		t.Errorf("view is %+v", v)
	}
	if diff := cmp.Diff([]string{"Nominated: on NodeClaim default-a, m5.xlarge"}, v.Events("Pod", "default", "p")); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	for name, tc := range map[string]struct {
		reason string
		parts  []string
		want   bool
	}{
		"all":            {"Nominated", []string{"default-a", "m5"}, true},
		"any reason":     {"", []string{"default-a"}, true},
		"another reason": {"Failed", nil, false},
		"a part misses":  {"Nominated", []string{"default-a", "spot"}, false},
	} {
		if got := v.HasEvent("Pod", "default", "p", tc.reason, tc.parts...); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
	s.podGone(p)
	if len(v.Pods) != 1 {
		t.Error("a view changed after it was taken")
	}
}

func TestSelector(t *testing.T) {
	t.Parallel()
	p := pod("p")
	for name, tc := range map[string]struct {
		selector PodSelector
		want     bool
	}{
		"all":               {PodSelector{}, true},
		"everything fits":   {PodSelector{"default", "jit-scheduler", map[string]string{"app": "inflate"}}, true},
		"another namespace": {PodSelector{Namespace: "x"}, false},
		"another scheduler": {PodSelector{SchedulerName: "x"}, false},
		"another value":     {PodSelector{Labels: map[string]string{"app": "x"}}, false},
		"no such label":     {PodSelector{Labels: map[string]string{"x": ""}}, false},
	} {
		if got := tc.selector.Matches(p); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}

func TestStamp(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Time{
		`null`: {}, `""`: {}, `"2026-03-18T12:00:00Z"`: epoch,
	} {
		stamp := Stamp{epoch}
		if err := stamp.UnmarshalJSON([]byte(text)); err != nil || !stamp.Equal(want) {
			t.Errorf("%s is %v, %v; want %v", text, stamp, err, want)
		}
	}
	if err := new(Stamp).UnmarshalJSON([]byte(`"yesterday"`)); err == nil {
		t.Error("yesterday is a time")
	}
}
