// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// slowLock takes its time for every write, and fails while broken.
type slowLock struct {
	resourcelock.Interface
	takes  time.Duration
	broken bool
}

func (l *slowLock) Identity() string { return "me" }
func (l *slowLock) Describe() string { return "kube-system/jit-scheduler" }

func (l *slowLock) Update(context.Context, resourcelock.LeaderElectionRecord) error {
	time.Sleep(l.takes)
	if l.broken {
		return errors.New("broken")
	}
	return nil
}

func (l *slowLock) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.Update(ctx, r)
}

func TestLeaseGuard(t *testing.T) {
	mine, released := resourcelock.LeaderElectionRecord{HolderIdentity: "me"}, resourcelock.LeaderElectionRecord{}
	for name, tt := range map[string]struct {
		do   func(t *testing.T, g *leaseGuard, l *slowLock)
		want string
	}{
		"never led": {want: "the lease kube-system/jit-scheduler is not ours", do: func(*testing.T, *leaseGuard, *slowLock) {}},
		"acquired":  {do: func(t *testing.T, g *leaseGuard, _ *slowLock) { check(t, g.Create(t.Context(), mine)) }},
		"renewed in time": {do: func(t *testing.T, g *leaseGuard, _ *slowLock) {
			check(t, g.Create(t.Context(), mine))
			time.Sleep(9 * time.Second)
			check(t, g.Update(t.Context(), mine))
			time.Sleep(9 * time.Second)
		}},
		"stopped for long": {want: "the lease kube-system/jit-scheduler was last renewed 11s ago", do: func(t *testing.T, g *leaseGuard, _ *slowLock) {
			check(t, g.Create(t.Context(), mine))
			time.Sleep(11 * time.Second)
		}},
		"counts from before the write": {want: "the lease kube-system/jit-scheduler was last renewed 12s ago", do: func(t *testing.T, g *leaseGuard, l *slowLock) {
			l.takes = 6 * time.Second
			check(t, g.Create(t.Context(), mine))
			time.Sleep(6 * time.Second)
		}},
		"failed renewal": {want: "the lease kube-system/jit-scheduler was last renewed 11s ago", do: func(t *testing.T, g *leaseGuard, l *slowLock) {
			check(t, g.Create(t.Context(), mine))
			time.Sleep(11 * time.Second)
			l.broken = true
			if g.Update(t.Context(), mine) == nil {
				t.Error("the lock's error is lost")
			}
		}},
		"released, even if that fails": {want: "the lease kube-system/jit-scheduler is not ours", do: func(t *testing.T, g *leaseGuard, l *slowLock) {
			check(t, g.Create(t.Context(), mine))
			l.broken = true
			_ = g.Update(t.Context(), released)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &slowLock{}
				g := newLeaseGuard(l, 10*time.Second)
				tt.do(t, g, l)
				got := ""
				if err := g.Leading(); err != nil {
					got = err.Error()
				}
				if got != tt.want {
					t.Errorf("Leading() = %q, want %q", got, tt.want)
				}
			})
		})
	}
}

// TestGuardedTransport: reading passes always, changing only while the lease is ours.
func TestGuardedTransport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent []string
		g := newLeaseGuard(&slowLock{}, 10*time.Second)
		rt := g.transport(roundTripper(func(r *http.Request) (*http.Response, error) {
			sent = append(sent, r.Method)
			return &http.Response{}, nil
		}))
		send := func(method string) {
			resp, err := rt.RoundTrip(httptest.NewRequest(method, "/api/v1/pods", nil))
			if err == nil && resp.Body != nil {
				t.Error("a body")
			}
		}
		send(http.MethodGet)
		send(http.MethodPost)
		check(t, g.Create(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "me"}))
		send(http.MethodPatch)
		time.Sleep(11 * time.Second)
		send(http.MethodDelete)
		send(http.MethodGet)
		if diff := cmp.Diff([]string{"GET", "PATCH", "GET"}, sent); diff != "" {
			t.Errorf("sent (-want +got):\n%s", diff)
		}
	})
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
