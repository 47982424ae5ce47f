// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/judge"
)

func TestParse(t *testing.T) {
	t.Parallel()
	got, err := parse([]string{
		"--kubeconfig=k", "--fake-url=http://f", "--duration=3s", "--want-nothing-left", "--json",
		"--limit=default=1000", "--limit=gpu=8.5", "--skip=leader=one replica", "--replica=a=AKA,JTI=1", "--replica=b=AKB",
	}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	want := judge.Rules{
		WantNothingLeft: true, ReasonMaxAge: 10 * time.Minute,
		Limits:   map[string]float64{"default": 1000, "gpu": 8.5},
		Skip:     map[string]string{"leader": "one replica"},
		Replicas: []judge.Replica{{Name: "a", AccessKey: "AKA", CredentialID: "JTI=1"}, {Name: "b", AccessKey: "AKB"}},
	}
	if diff := cmp.Diff(want, got.rules); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	if got.schedulerName != "jit-scheduler" || got.duration != 3*time.Second || !got.json || got.fakeURL != "http://f" {
		t.Errorf("options are %+v", got)
	}
}

func TestParseFails(t *testing.T) {
	for name, args := range map[string][]string{
		"no kubeconfig":  {},
		"a bad limit":    {"--kubeconfig=k", "--limit=default"},
		"no reason":      {"--kubeconfig=k", "--skip=leader"},
		"no access key":  {"--kubeconfig=k", "--replica=a"},
		"unknown flag":   {"--kubeconfig=k", "--typo"},
		"stray argument": {"--kubeconfig=k", "stray"},
	} {
		t.Setenv("KUBECONFIG", "")
		if _, err := parse(args, io.Discard); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// apiServer is an API server that has one pod for jit-scheduler, and whose
// watches stay silent.
func apiServer(t *testing.T) (kubeconfig string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.Contains(r.URL.Path, "nodeclaims"):
			http.NotFound(w, r)
		case r.URL.Query().Get("watch") != "":
			w.WriteHeader(http.StatusOK)
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Error(err)
			}
			<-r.Context().Done()
		default:
			items := []any{}
			if strings.HasSuffix(r.URL.Path, "/pods") {
				items = append(items, map[string]any{
					"metadata": map[string]any{"name": "p", "namespace": "default", "uid": "1", "resourceVersion": "5"},
					"spec":     map[string]any{"schedulerName": "jit-scheduler"},
				})
			}
			list := map[string]any{"metadata": map[string]any{"resourceVersion": "7"}, "items": items}
			if err := json.NewEncoder(w).Encode(list); err != nil {
				t.Error(err)
			}
		}
	}))
	t.Cleanup(server.CloseClientConnections)
	t.Cleanup(server.Close)
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	config := "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: '" + server.URL + "'}}]\n" +
		"contexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n"
	if err := os.WriteFile(kubeconfig, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

func TestRun(t *testing.T) {
	t.Parallel()
	metrics := filepath.Join(t.TempDir(), "metrics")
	if err := os.WriteFile(metrics, []byte("scheduler_pod_scheduled_after_flush_total 0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		args       []string
		wantPassed bool
		wantOutput string
	}{
		"a lost pod":     {nil, false, "default/p"},
		"as JSON":        {[]string{"--json"}, false, `"invariant": "pod-lost"`},
		"another's pods": {[]string{"--scheduler-name=other", "--metrics=" + metrics}, true, "PASS"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stdout bytes.Buffer
			args := append([]string{"--kubeconfig=" + apiServer(t), "--duration=10ms"}, tc.args...)
			passed, err := run(t.Context(), args, &stdout, io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			if passed != tc.wantPassed || !strings.Contains(stdout.String(), tc.wantOutput) {
				t.Errorf("passed is %t, want %t; output has no %q:\n%s", passed, tc.wantPassed, tc.wantOutput, &stdout)
			}
		})
	}
}

func TestRunWithoutAVerdict(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"no metrics file": {"--kubeconfig=" + apiServer(t), "--duration=1ms", "--metrics=none"},
		"no kubeconfig":   {"--kubeconfig=none"},
	} {
		if _, err := run(t.Context(), args, io.Discard, io.Discard); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
