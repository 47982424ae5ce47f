// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"
)

func start(t *testing.T, c *fakeCluster, fakeURL string, rules Rules) *Judge {
	t.Helper()
	j, err := Start(t.Context(), Config{
		Kube: c.kube, Dynamic: c.dyn, FakeURL: fakeURL, SchedulerName: "jit-scheduler", Rules: rules,
		PollInterval: 5 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(j.Stop)
	return j
}

func waitFor(t *testing.T, j *Judge, what string, done func(*View) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := j.WaitFor(ctx, done); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func report(t *testing.T, j *Judge) *Report {
	t.Helper()
	r, err := j.Report(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func names(violations []Violation) []string {
	var found []string
	for _, v := range violations {
		found = append(found, v.Invariant+" "+v.Subject)
	}
	return found
}

func TestJudgeFollowsARun(t *testing.T) {
	t.Parallel()
	c, aws := newFakeCluster(t), newFakeAWS(t)
	j := start(t, c, aws.url, Rules{Limits: map[string]float64{"default": 4}})
	app := PodSelector{Labels: map[string]string{"app": "inflate"}}

	c.create(pod("p"))
	waitFor(t, j, "pod", func(v *View) bool { return v.Count(app) == PodCounts{Total: 1} })
	i := instanceOf("a", "n1")
	i.ClientToken = "token"
	aws.launch(i)
	c.served.Store(true)
	c.createClaim("a", "n1")
	waitFor(t, j, "claim and instance", func(v *View) bool { return len(v.Claims) == 1 && len(v.LiveInstances()) == 1 })
	j.Mark("launched")
	c.create(node("n1"))
	c.updatePod(pod("p", on("n1")))
	waitFor(t, j, "bound", func(v *View) bool { return v.Count(app).Bound == 1 && v.ReadyNodes(true) == 1 })
	j.Mark("bound")

	r := report(t, j)
	if diff := cmp.Diff([]string(nil), names(r.Violations)); diff != "" {
		t.Errorf("violations (-want +got):\n%s%v", diff, r.Violations)
	}
	f := r.Figures
	if f.Claims != 1 || f.Instances != 1 || f.PeakUSDPerHour != 0.192 || f.Binding.Bound != 1 || f.Marks[1].Bound != 1 {
		t.Errorf("figures are %+v", f)
	}
	if f.FirstFleetAfterPod <= 0 || f.BoundAfterReady.Count != 1 || f.ClaimAfterPod.Count != 1 {
		t.Errorf("latencies are %+v", f)
	}
}

// A state that lasts for one update only is seen.
func TestJudgeSeesIntermediateStates(t *testing.T) {
	t.Parallel()
	c := newFakeCluster(t)
	j := start(t, c, "", Rules{})
	big := func(p *corev1.Pod) { p.Spec.Containers[0].Resources = requests("3", "") }
	c.create(node("n1"), pod("a", big), pod("b", big))
	waitFor(t, j, "node", func(v *View) bool { return v.ReadyNodes(false) == 1 })
	c.updatePod(pod("a", big, on("n1")))
	c.updatePod(pod("b", big, on("n1")))
	c.deletePod(pod("b"))
	if diff := cmp.Diff([]string{"node-overcommit n1"}, names(report(t, j).Violations)); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
}

func TestAWatchThatGoesOnIsNoGap(t *testing.T) {
	t.Parallel()
	c := newFakeCluster(t)
	breakWith, repair := c.breakable("pods")
	j := start(t, c, "", Rules{})
	breakWith(io.EOF)
	time.Sleep(1200 * time.Millisecond) // one retry that fails
	repair()
	time.Sleep(1200 * time.Millisecond)
	c.create(pod("p"))
	waitFor(t, j, "a pod of the new watch", func(v *View) bool { return len(v.Pods) == 1 })
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.state.gaps) > 0 {
		t.Errorf("gaps are %v, want none", j.state.gaps)
	}
}

func TestAWatchThatCannotGoOnIsAGap(t *testing.T) {
	t.Parallel()
	c := newFakeCluster(t)
	breakWith, repair := c.breakable("pods")
	j := start(t, c, "", Rules{Skip: map[string]string{"pod-lost": "nobody schedules"}})
	c.create(pod("before"))
	waitFor(t, j, "first pod", func(v *View) bool { return len(v.Pods) == 1 })
	breakWith(apierrors.NewResourceExpired("too old resource version"))
	c.create(pod("meanwhile"))
	c.deletePod(pod("before"))
	time.Sleep(1200 * time.Millisecond) // the retry, which is told
	repair()
	waitFor(t, j, "what happened meanwhile", func(v *View) bool {
		return len(v.Pods) == 1 && v.Select(PodSelector{})[0].Name == "meanwhile"
	})
	got := names(report(t, j).Violations)
	if len(got) == 0 || got[0] != "watch-gap pods" {
		t.Errorf("violations are %v, want watch-gap pods", got)
	}
}

// A watch that shows nothing is found out by the last list.
func TestADeafWatchIsAGap(t *testing.T) {
	t.Parallel()
	c := newFakeCluster(t)
	c.kube.PrependWatchReactor("nodes", func(clienttesting.Action) (bool, watch.Interface, error) {
		return true, watch.NewRaceFreeFake(), nil
	})
	j := start(t, c, "", Rules{})
	c.create(node("n1"))
	for _, s := range j.streams {
		if s.name != "nodes" {
			continue
		}
		err := s.caughtUp(t.Context(), 30*time.Millisecond)
		if err == nil || !strings.Contains(err.Error(), "n1 is not known") {
			t.Errorf("error is %v, want n1 to be missed", err)
		}
	}
}

func TestWaitForSaysWhatItSaw(t *testing.T) {
	t.Parallel()
	c := newFakeCluster(t)
	j := start(t, c, "", Rules{})
	c.create(pod("p", on("n1")), pod("q", nominated("a")))
	waitFor(t, j, "pods", func(v *View) bool { return len(v.Pods) == 2 })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := j.WaitFor(ctx, func(*View) bool { return false })
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "2 pods (1 bound, 1 nominated") {
		t.Errorf("error is %v", err)
	}
}

func TestStartFails(t *testing.T) {
	t.Parallel()
	down := httptest.NewServer(http.NotFoundHandler())
	down.Close()
	for name, tc := range map[string]struct {
		change    func(*fakeCluster, *Config)
		wantError string
	}{
		"no scheduler name": {
			change:    func(_ *fakeCluster, config *Config) { config.SchedulerName = "" },
			wantError: "SchedulerName",
		},
		"a misspelt invariant is skipped": {
			change:    func(_ *fakeCluster, config *Config) { config.Rules.Skip = map[string]string{"pod-list": "x"} },
			wantError: `cannot skip "pod-list"`,
		},
		"an invariant is skipped without a reason": {
			change:    func(_ *fakeCluster, config *Config) { config.Rules.Skip = map[string]string{"pod-lost": ""} },
			wantError: "needs a reason",
		},
		"one replica only": {
			change:    func(_ *fakeCluster, config *Config) { config.Rules.Replicas = []Replica{{Name: "a"}} },
			wantError: "one replica",
		},
		"the fake is down": {
			change:    func(_ *fakeCluster, config *Config) { config.FakeURL = down.URL },
			wantError: "asking the fake for prices",
		},
		"pods are forbidden": {
			change: func(c *fakeCluster, _ *Config) {
				c.kube.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
					return true, nil, apierrors.NewForbidden(corev1.Resource("pods"), "", errors.New("no"))
				})
			},
			wantError: "watching pods: context deadline exceeded; listing pods: pods is forbidden",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newFakeCluster(t)
			config := Config{Kube: c.kube, Dynamic: c.dyn, SchedulerName: "jit-scheduler"}
			tc.change(c, &config)
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			_, err := Start(ctx, config)
			if err == nil || !strings.Contains(err.Error(), tc.wantError) {
				t.Errorf("error is %v, want %q", err, tc.wantError)
			}
		})
	}
}

func TestReportWithoutTheFakeIsNoVerdict(t *testing.T) {
	t.Parallel()
	c := newFakeCluster(t)
	j := start(t, c, newFakeAWS(t).url, Rules{})
	down := httptest.NewServer(http.NotFoundHandler())
	defer down.Close()
	j.poller.fake = newFakeClient(down.URL)
	if _, err := j.Report(t.Context()); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("error is %v, want the fake's 404", err)
	}
}
