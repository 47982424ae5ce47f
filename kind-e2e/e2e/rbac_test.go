// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/cluster"
	"github.com/jit-scheduler/jit-scheduler/manifests"
)

const productUser = "system:serviceaccount:kube-system:jit-scheduler"

func TestStrangers(t *testing.T) {
	t.Parallel()
	const agent = "jit-scheduler/v0.0.0"
	for name, tc := range map[string]struct {
		event        cluster.AuditEvent
		wantFaults   []string
		wantRequests int
	}{
		"its own": {event: cluster.AuditEvent{User: productUser, UserAgent: agent, Verb: "list", Resource: "nodes", Code: 200}, wantRequests: 1},
		"somebody else's": {
			event: cluster.AuditEvent{User: "system:kube-scheduler", UserAgent: "kube-scheduler/v1.37.2", Verb: "delete", Resource: "nodes", Code: 403, Decision: "forbid"},
		},
		"as admin": {
			event:        cluster.AuditEvent{User: "admin", UserAgent: agent, Verb: "patch", Resource: "nodes", Code: 200},
			wantFaults:   []string{"patch nodes as admin (1 times)"},
			wantRequests: 1,
		},
		"refused": {
			event:        cluster.AuditEvent{User: productUser, UserAgent: agent, Verb: "update", Resource: "nodeclaims", Subresource: "status", Code: 403, Decision: "forbid", Reason: "no rule"},
			wantFaults:   []string{"update nodeclaims/status was refused: no rule (1 times)"},
			wantRequests: 1,
		},
		"refused by admission, which RBAC allowed": {
			event:        cluster.AuditEvent{User: productUser, UserAgent: agent, Verb: "create", Resource: "nodeclaims", Code: 403, Decision: "allow"},
			wantRequests: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			faults, requests := strangers([]cluster.AuditEvent{tc.event})
			if diff := cmp.Diff(tc.wantFaults, faults); diff != "" || requests != tc.wantRequests {
				t.Errorf("%d requests, want %d; faults (-want +got):\n%s", requests, tc.wantRequests, diff)
			}
		})
	}
}

func TestUnused(t *testing.T) {
	t.Parallel()
	permissions := []manifests.Permission{{Role: "r", APIGroup: "karpenter.sh", Resource: "nodeclaims/status", Verb: "patch"}}
	listing := []manifests.Permission{{Role: "r", Resource: "nodes", Verb: "list"}}
	watch := cluster.AuditEvent{User: productUser, Resource: "nodes", Verb: "watch", Code: 200, URI: "/api/v1/nodes?watch=true"}
	streaming := watch
	streaming.URI += "&sendInitialEvents=true"
	used := cluster.AuditEvent{User: productUser, APIGroup: "karpenter.sh", Resource: "nodeclaims", Subresource: "status", Verb: "patch", Code: 200}
	refused, others := used, used
	refused.Code, others.User = 409, "admin"
	unusedText := []string{"r may patch nodeclaims/status.karpenter.sh, which no case needed"}
	for name, tc := range map[string]struct {
		permissions []manifests.Permission // permissions, if empty
		events      []cluster.AuditEvent
		want        []string
	}{
		"listed by a watch":    {permissions: listing, events: []cluster.AuditEvent{streaming}},
		"watched and not read": {permissions: listing, events: []cluster.AuditEvent{watch}, want: []string{"r may list nodes., which no case needed"}},
		"used":                 {events: []cluster.AuditEvent{used}},
		"never":                {want: unusedText},
		"without success":      {events: []cluster.AuditEvent{refused}, want: unusedText},
		"by somebody else":     {events: []cluster.AuditEvent{others}, want: unusedText},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.permissions == nil {
				tc.permissions = permissions
			}
			if diff := cmp.Diff(tc.want, unused(tc.permissions, tc.events)); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}
