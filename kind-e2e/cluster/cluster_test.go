// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

func TestWaitReady(t *testing.T) {
	t.Parallel()
	answers := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if answers++; answers < 3 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	t.Cleanup(server.Close)
	refused := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(refused.Close)
	cases := map[string]struct {
		script, url string
		earlier     string // the script of a component that was started before
		wantErrs    []string
	}{
		"ready at the third time": {script: "sleep 100", url: server.URL},
		"the process ends":        {script: "echo no such flag; exit 1", url: refused.URL, wantErrs: []string{"shell ended before all were ready (exit status 1)", "no such flag"}},
		"an earlier process ends": {script: "sleep 100", earlier: "echo no disk; exit 1", url: refused.URL, wantErrs: []string{"no disk"}},
		"never ready":             {script: "echo still trying; sleep 100", url: refused.URL, wantErrs: []string{"403 Forbidden", "still trying"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			c := &Cluster{config: &rest.Config{}}
			if tc.earlier != "" {
				c.processes = append(c.processes, startShell(t, tc.earlier))
			}
			err := c.waitReady(ctx, startShell(t, tc.script), tc.url)
			if (err == nil) != (len(tc.wantErrs) == 0) {
				t.Fatalf("got error %v, want %q", err, tc.wantErrs)
			}
			for _, want := range tc.wantErrs {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error does not say %q: %v", want, err)
				}
			}
		})
	}
}

func TestEmptyDir(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	old := filepath.Join(dir, "audit.log")
	c := &Cluster{Dir: dir}
	for range 2 { // the second time over our own, finished cluster
		if err := c.emptyDir(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(old); err == nil {
			t.Error("the state of an earlier cluster is left")
		}
		if pid, err := Owner(dir); pid != os.Getpid() || err != nil {
			t.Errorf("the owner is %d, error %v; want us", pid, err)
		}
		if err := os.WriteFile(old, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p, err := StartProcess(ProcessSpec{Name: "etcd", Path: "/bin/sleep", Args: []string{"100"}, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Kill() })
	if err := c.emptyDir(); err == nil || !strings.Contains(err.Error(), "etcd of an earlier cluster") {
		t.Errorf("a running cluster's folder was emptied: error %v", err)
	}
	if _, err := os.Stat(old); err != nil {
		t.Errorf("a running cluster lost its files: %v", err)
	}
}

func TestWaitNamesTheComponentThatEnded(t *testing.T) {
	t.Parallel()
	c := &Cluster{processes: []*Process{startShell(t, "sleep 100"), startShell(t, "echo out of luck; exit 3")}}
	if err := c.Wait(t.Context()); err == nil || !strings.Contains(err.Error(), "out of luck") {
		t.Errorf("got %v, want the log of the process that ended", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	healthy := &Cluster{processes: c.processes[:1]}
	if err := healthy.Wait(ctx); err != nil {
		t.Errorf("an interrupted Wait is an error: %v", err)
	}
}
