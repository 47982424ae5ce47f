// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	auditBind    = `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"a","stage":"ResponseComplete","requestURI":"/api/v1/namespaces/default/pods/p/binding","verb":"create","user":{"username":"system:kube-scheduler","groups":["system:authenticated"]},"sourceIPs":["127.0.0.1"],"userAgent":"kube-scheduler/v1.37.2","objectRef":{"resource":"pods","namespace":"default","name":"p","apiVersion":"v1","subresource":"binding"},"responseStatus":{"metadata":{},"code":201},"requestReceivedTimestamp":"2026-01-02T03:04:05.000006Z","stageTimestamp":"2026-01-02T03:04:05.000007Z","annotations":{"authorization.k8s.io/decision":"allow","authorization.k8s.io/reason":"RBAC: allowed"}}` + "\n"
	auditRefused = `{"stage":"ResponseComplete","requestURI":"/apis/karpenter.sh/v1/nodepools","verb":"list","user":{"username":"eve"},"objectRef":{"resource":"nodepools","apiGroup":"karpenter.sh","apiVersion":"v1"},"responseStatus":{"code":403},"requestReceivedTimestamp":"2026-01-02T03:04:05Z","stageTimestamp":"2026-01-02T03:04:05Z","annotations":{"authorization.k8s.io/decision":"forbid"}}` + "\n"
)

func TestParseAudit(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	bind := AuditEvent{
		Stage: "ResponseComplete", Verb: "create", URI: "/api/v1/namespaces/default/pods/p/binding",
		User: "system:kube-scheduler", Groups: []string{"system:authenticated"}, UserAgent: "kube-scheduler/v1.37.2",
		Resource: "pods", Subresource: "binding", Namespace: "default", Name: "p",
		Code: 201, Decision: "allow", Reason: "RBAC: allowed",
		Received: at.Add(6 * time.Microsecond), Time: at.Add(7 * time.Microsecond),
	}
	refused := AuditEvent{
		Stage: "ResponseComplete", Verb: "list", URI: "/apis/karpenter.sh/v1/nodepools", User: "eve",
		APIGroup: "karpenter.sh", Resource: "nodepools", Code: 403, Decision: "forbid", Received: at, Time: at,
	}
	cases := map[string]struct {
		log     string
		want    []AuditEvent
		wantErr string
	}{
		"nothing":                          {},
		"requests, in order":               {log: auditBind + auditRefused, want: []AuditEvent{bind, refused}},
		"a line that is still written":     {log: auditRefused + auditBind[:100], want: []AuditEvent{refused}},
		"an empty line":                    {log: "\n" + auditRefused, want: []AuditEvent{refused}},
		"a broken line before a whole one": {log: auditBind[:100] + "\n" + auditRefused, wantErr: "line 1"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := ParseAudit(strings.NewReader(tc.log))
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Fatalf("got error %v, want one with %q", err, tc.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzParseAudit(f *testing.F) {
	f.Add(auditBind + auditRefused)
	f.Add("{}\n")
	f.Fuzz(func(t *testing.T, log string) {
		events, err := ParseAudit(strings.NewReader(log))
		if err == nil && len(events) > strings.Count(log, "\n") {
			t.Errorf("%d events from %d lines", len(events), strings.Count(log, "\n"))
		}
	})
}
