// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// lonePods gives each of two pods a machine: 1 s to the claim, 2 s to
// CreateFleet, 3 s to the launch.
func lonePods(s *scenario) {
	for _, name := range []string{"a", "b"} {
		s.pod(pod(name)).claim(claimOn(name, ""))
		s.call(Call{Action: "CreateFleet", DryRun: true})
		s.call(Call{Action: "CreateFleet", Params: map[string]any{"ClientToken": name}})
		i := instanceOf(name, "n-"+name)
		i.ClientToken = name
		s.instance(i).claim(claimOn(name, "n-"+name)).node(node("n-"+name, notReady)).node(node("n-" + name))
		s.pod(pod(name, on("n-"+name)))
		s.Mark("bound "+name, s.now)
	}
}

func TestFigures(t *testing.T) {
	t.Parallel()
	s := newScenario()
	lonePods(s)
	s.pod(pod("c")).pod(pod("c", on("n-a"))) // existing room
	s.pod(pod("other", byScheduler("default-scheduler"))).pod(pod("other", byScheduler("default-scheduler"), on("n-b")))
	s.wait(time.Hour)
	s.terminate("i-n-a")
	f := s.Figures(s.now, PodSelector{SchedulerName: "jit-scheduler"})

	if f.Binding.Pods != 3 || f.Binding.Bound != 3 || f.Claims != 2 || f.Instances != 2 {
		t.Errorf("counts are %d pods, %d bound, %d claims, %d instances", f.Binding.Pods, f.Binding.Bound, f.Claims, f.Instances)
	}
	one := func(d time.Duration) Dist { return Dist{Count: 1, Min: d, Median: d, P90: d, Max: d} }
	two := func(d time.Duration) Dist { return Dist{Count: 2, Min: d, Median: d, P90: d, Max: d} }
	for name, got := range map[string]struct{ got, want Dist }{
		// a shares its claim with c.
		"fleet after pod":   {f.FleetAfterPod, one(3 * time.Second)},
		"claim after pod":   {f.ClaimAfterPod, two(time.Second)},
		"bound after ready": {f.BoundAfterReady, two(time.Second)},
		"bound after pod":   {f.BoundAfterPod, two(8 * time.Second)},
	} {
		if diff := cmp.Diff(got.want, got.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if diff := cmp.Diff(map[string]int{"CreateFleet": 2, "CreateFleet (dry run)": 2}, f.Calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if f.PeakUSDPerHour != 0.384 || f.USDPerHourAtEnd != 0.192 || f.PeakVCPUs != 8 || f.TotalUSD < 0.384 || f.TotalUSD > 0.387 {
		t.Errorf("peak $%v/h, end $%v/h, peak %v vCPU, total $%v", f.PeakUSDPerHour, f.USDPerHourAtEnd, f.PeakVCPUs, f.TotalUSD)
	}
	second := f.Marks[1]
	if second.Bound != 1 || second.Instances != 2 || second.Claims != 2 || second.USDPerHour != 0.384 || math.Abs(second.PodsPerSecond-1.0/9) > 1e-9 {
		t.Errorf("mark is %+v", second)
	}
}

// The first launch of a run makes its launch template and stands apart.
func TestFirstLaunchStandsApart(t *testing.T) {
	t.Parallel()
	s := newScenario()
	lonePods(s)
	f := s.Figures(s.now, PodSelector{})
	if f.FirstFleetAfterPod != 3*time.Second || f.FleetAfterPod.Count != 1 {
		t.Errorf("first after %v, %d others; want 3 s and 1", f.FirstFleetAfterPod, f.FleetAfterPod.Count)
	}
}

func TestNominatedFirst(t *testing.T) {
	t.Parallel()
	s := newScenario()
	s.pod(pod("early")).pod(pod("early", nominated("x"))).pod(pod("late")).pod(pod("never"))
	s.node(node("n1"))
	s.pod(pod("late", nominated("x")))
	s.pod(pod("early", on("n1"))).pod(pod("late", on("n1"))).pod(pod("never", on("n1")))
	s.pod(pod("waits")).pod(pod("waits", nominated("y")))
	f := s.Figures(s.now, PodSelector{})
	if f.Nominated != 3 || f.NominatedBeforeNode != 2 || f.NominatedAfterPod.Min != time.Second {
		t.Errorf("%d pods nominated, %d before their Node, the first after %v; want 3, 2, 1 s",
			f.Nominated, f.NominatedBeforeNode, f.NominatedAfterPod.Min)
	}
}

func TestBinding(t *testing.T) {
	t.Parallel()
	s := newScenario()
	plain := byScheduler("default-scheduler")
	s.node(node("n1"))
	s.pod(pod("a", plain)).pod(pod("b", plain)).pod(pod("c", plain))
	s.pod(pod("a", plain, on("n1"))).pod(pod("b", plain, on("n1"))).pod(pod("ours")).pod(pod("ours", on("n1")))
	got := s.Binding(PodSelector{Namespace: "default", SchedulerName: "default-scheduler", Labels: map[string]string{"app": "inflate"}})
	want := Binding{
		Pods: 3, Bound: 2, FirstSeen: epoch.Add(2 * time.Second), LastBound: epoch.Add(6 * time.Second), PodsPerSecond: 0.5,
		Latency: Dist{Count: 2, Min: 3 * time.Second, Median: 3 * time.Second, P90: 3 * time.Second, Max: 3 * time.Second},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("binding (-want +got):\n%s", diff)
	}
}

func TestDist(t *testing.T) {
	t.Parallel()
	var ten []time.Duration
	for i := range 10 {
		ten = append(ten, time.Duration(10-i))
	}
	for name, tc := range map[string]struct {
		durations []time.Duration
		want      Dist
	}{
		"none": {nil, Dist{}},
		"one":  {[]time.Duration{7}, Dist{Count: 1, Min: 7, Median: 7, P90: 7, Max: 7}},
		"odd":  {[]time.Duration{3, 1, 2}, Dist{Count: 3, Min: 1, Median: 2, P90: 3, Max: 3}},
		"ten":  {ten, Dist{Count: 10, Min: 1, Median: 5, P90: 9, Max: 10}},
	} {
		if diff := cmp.Diff(tc.want, newDist(tc.durations)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestPrices(t *testing.T) {
	t.Parallel()
	catalogue := map[string]float64{"m5.xlarge": 0.192}
	for name, tc := range map[string]struct {
		instance Instance
		want     float64
	}{
		"as charged":   {Instance{InstanceType: "m5.xlarge", PriceUSDPerHour: 0.06}, 0.06},
		"by catalogue": {Instance{InstanceType: "m5.xlarge"}, 0.192},
		"unknown":      {Instance{InstanceType: "x"}, 0},
	} {
		if got := price(&tc.instance, catalogue); got != tc.want {
			t.Errorf("%s: price is %v, want %v", name, got, tc.want)
		}
	}
}

func TestGoals(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		goal        Goal
		wantVerdict string
	}{
		"met":                {Goal{Value: 80, Want: 100}, "met"},
		"missed, but passes": {Goal{Value: 499, Want: 100}, "missed"},
		"5 × the goal":       {Goal{Value: 500, Want: 100}, "missed"},
		"over 5 ×":           {Goal{Value: 501, Want: 100}, "FAILED"},
		"rate met":           {Goal{Value: 95, Want: 90, AtLeast: true}, "met"},
		"rate missed":        {Goal{Value: 20, Want: 90, AtLeast: true}, "missed"},
		"rate fails":         {Goal{Value: 17, Want: 90, AtLeast: true}, "FAILED"},
		"price met":          {Goal{Value: 0.1 + 0.2, Want: 0.3, Exact: true}, "met"},
		"price fails":        {Goal{Value: 0.307, Want: 0.306, Exact: true}, "FAILED"},
	} {
		if got := tc.goal.verdict(); got != tc.wantVerdict {
			t.Errorf("%s: %s, want %s", name, got, tc.wantVerdict)
		}
	}
}

func TestReportTexts(t *testing.T) {
	t.Parallel()
	s := newScenario()
	lonePods(s)
	s.pod(pod("lost"))
	goals := []Goal{
		{Name: "pod → CreateFleet, median", Value: 80, Want: 100, Unit: "ms", Floor: 12},
		{Name: "cost", Value: 2, Want: 1, Unit: "$/h", Exact: true},
	}
	r := newReport(s.State, s.now, Rules{Skip: map[string]string{"leader": "one replica"}}, goals)
	var text, data bytes.Buffer
	if err := r.Print(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"pods of jit-scheduler", "2: 2 × m5.xlarge", "$0.3840/h, 8 vCPU", "median 3s, max 3s, of 1",
		"bound b", "12 ms", "met", "FAILED", "not judged: leader: one replica", "not judged: limits: no limits given",
		"pod-lost", "default/lost", "FAIL: 2 violations of 2 invariants",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in:\n%s", want, &text)
		}
	}
	if err := r.JSON(&data); err != nil {
		t.Fatal(err)
	}
	var decoded struct {
		Violations []Violation
		Figures    struct {
			FleetAfterPod struct{ MedianMs float64 }
		}
	}
	if err := json.Unmarshal(data.Bytes(), &decoded); err != nil {
		t.Fatal(err)
	}
	if len(decoded.Violations) != 2 || decoded.Figures.FleetAfterPod.MedianMs != 3000 {
		t.Errorf("JSON says %+v", decoded)
	}
}
