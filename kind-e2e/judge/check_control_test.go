// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLeader(t *testing.T) {
	t.Parallel()
	rules := Rules{Replicas: []Replica{
		{Name: "a", AccessKey: "AKA", CredentialID: "JTI=a"},
		{Name: "b", AccessKey: "AKB", UserAgent: "replica-b"},
	}}
	testInvariant(t, "leader", map[string]invariantCase{
		"a clean handover": {rules: rules, run: func(s *scenario) {
			s.call(Call{AccessKey: "AKA", Action: "CreateFleet"}).call(Call{AccessKey: "AKA", Action: "CreateTags"})
			s.call(Call{AccessKey: "AKB", Action: "CreateFleet"}).call(Call{AccessKey: "AKA", Action: "DescribeInstances"})
			s.call(Call{AccessKey: "AKA", Action: "CreateFleet", DryRun: true}).call(Call{AccessKey: "other", Action: "CreateFleet"})
		}},
		"the former leader wakes up": {
			rules: rules,
			run: func(s *scenario) {
				s.call(Call{AccessKey: "AKA", Action: "CreateFleet"}).call(Call{AccessKey: "AKB", Action: "CreateFleet"})
				s.call(Call{AccessKey: "AKA", Action: "TerminateInstances"})
			},
			want: []string{"a: TerminateInstances, 1s after the first mutating call of the new leader b (CreateFleet)"},
		},
		"nobody asked": {run: func(s *scenario) {
			s.call(Call{AccessKey: "AKA", Action: "CreateFleet"}).call(Call{AccessKey: "AKB", Action: "CreateFleet"})
			s.call(Call{AccessKey: "AKA", Action: "CreateFleet"})
		}},
		"it writes to the API server": {
			rules: rules,
			run: func(s *scenario) {
				s.audit = readAudit(t, `
{"stage":"ResponseComplete","verb":"create","requestReceivedTimestamp":"2026-03-18T12:00:01.000001Z","user":{"extra":{"authentication.kubernetes.io/credential-id":["JTI=a"]}},"objectRef":{"resource":"nodeclaims","name":"x"},"responseStatus":{"code":201}}
{"stage":"ResponseComplete","verb":"update","requestReceivedTimestamp":"2026-03-18T12:00:02.000000Z","userAgent":"jit-scheduler/replica-b","objectRef":{"resource":"leases","namespace":"kube-system","name":"jit"},"responseStatus":{"code":200}}
{"stage":"ResponseComplete","verb":"patch","requestReceivedTimestamp":"2026-03-18T12:00:03.000000Z","user":{"extra":{"authentication.kubernetes.io/credential-id":["JTI=a"]}},"objectRef":{"resource":"nodes","name":"n0"},"responseStatus":{"code":200}}
{"stage":"ResponseComplete","verb":"create","requestReceivedTimestamp":"2026-03-18T12:00:04.000000Z","userAgent":"jit-scheduler/replica-b","objectRef":{"resource":"pods","subresource":"binding","namespace":"default","name":"p"},"responseStatus":{"code":201}}
{"stage":"ResponseComplete","verb":"update","requestReceivedTimestamp":"2026-03-18T12:00:05.000000Z","user":{"extra":{"authentication.kubernetes.io/credential-id":["JTI=a"]}},"objectRef":{"resource":"nodes","name":"n1"},"responseStatus":{"code":409}}
{"stage":"RequestReceived","verb":"patch","requestReceivedTimestamp":"2026-03-18T12:00:06.000000Z","user":{"extra":{"authentication.kubernetes.io/credential-id":["JTI=a"]}},"objectRef":{"resource":"nodes","name":"n1"}}
{"stage":"ResponseComplete","verb":"patch","requestReceivedTimestamp":"2026-03-18T12:00:06.500000Z","user":{"extra":{"authentication.kubernetes.io/credential-id":["JTI=a"]}},"objectRef":{"resource":"nodes","name":"n1"},"responseStatus":{"code":200}}
{"stage":"ResponseComplete","verb":"patch","requestRecei`)
			},
			want: []string{"a: patch nodes /n1, 2.5s after the first mutating call of the new leader b (create pods/binding default/p)"},
		},
	})
}

func readAudit(t *testing.T, log string) []AuditEvent {
	t.Helper()
	events, err := ReadAudit(strings.NewReader(strings.TrimPrefix(log, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	return events
}

func TestReadAuditRefusesGarbage(t *testing.T) {
	t.Parallel()
	_, err := ReadAudit(strings.NewReader("{}\nnot json\n"))
	if err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("error is %v, want one of line 2", err)
	}
}

func FuzzReadAudit(f *testing.F) {
	f.Add(`{"stage":"ResponseComplete","verb":"get","requestReceivedTimestamp":"2026-03-18T12:00:01.000001Z"}` + "\n")
	f.Add("{\n")
	f.Fuzz(func(t *testing.T, log string) {
		events, err := ReadAudit(strings.NewReader(log))
		if err == nil && len(events) > strings.Count(log, "\n") {
			t.Errorf("%d events of %d lines", len(events), strings.Count(log, "\n"))
		}
	})
}

func FuzzMetricSum(f *testing.F) {
	f.Add("a 1\na{b=\"c\"} 2\n")
	f.Add("a{b=\"} 3\n")
	f.Fuzz(func(t *testing.T, text string) {
		if _, found := metricSum(text, "a"); found && !strings.Contains(text, "a") {
			t.Error("found what is not there")
		}
	})
}

func TestFlushMetric(t *testing.T) {
	t.Parallel()
	const name = "scheduler_pod_scheduled_after_flush_total"
	metrics := func(texts ...string) func(*scenario) {
		return func(s *scenario) { s.metrics = texts }
	}
	testInvariant(t, "flush-metric", map[string]invariantCase{
		"not given": {run: metrics()},
		"zero":      {run: metrics("# HELP " + name + " pods\n# TYPE " + name + " counter\n" + name + " 0\nother 7\n")},
		"one, in the second replica": {
			run:  metrics(name+" 0\n", name+" 1\n"),
			want: []string{name + ": is 1, want 0"},
		},
		"with labels": {
			run:  metrics(name + `{a="b"} 0` + "\n" + name + `{a="c"} 2` + "\n"),
			want: []string{name + ": is 2, want 0"},
		},
		"missing": {
			run:  metrics("# HELP " + name + " pods\n" + name + "_created 1\n"),
			want: []string{name + ": not among the metrics that were given"},
		},
	})
}

func TestWatchGap(t *testing.T) {
	t.Parallel()
	testInvariant(t, "watch-gap", map[string]invariantCase{
		"none": {run: goodRun},
		"one": {
			run:  func(s *scenario) { s.ObserveGap(s.now, "pods", "watching pods: too old resource version") },
			want: []string{"pods: watching pods: too old resource version"},
		},
	})
}

func TestSkippedInvariantsAreNotJudged(t *testing.T) {
	t.Parallel()
	s := newScenario()
	s.pod(pod("p"))
	if got := s.Check(s.now, Rules{}); len(got) != 1 {
		t.Fatalf("violations are %v, want one", got)
	}
	got := s.Check(s.now, Rules{Skip: map[string]string{"pod-lost": "the scheduler is not running"}})
	if diff := cmp.Diff([]Violation(nil), got); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
}
