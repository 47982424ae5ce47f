// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// AuditEvent is one answered request, or one ended watch.
type AuditEvent struct {
	// Stage is ResponseComplete, Panic, or ResponseStarted, which only watches
	// have, besides their ResponseComplete.
	Stage     string
	Verb      string
	URI       string
	User      string
	Groups    []string
	UserAgent string
	// APIGroup, Resource, Subresource, Namespace and Name are empty for a
	// request that is not for a resource (URI says what it was for).
	APIGroup, Resource, Subresource string
	Namespace, Name                 string
	// Code is the HTTP status; 403 is what RBAC refused.
	Code int
	// Decision and Reason are the authorizer's: allow, and by which binding and
	// role.
	Decision, Reason string
	// Received is when the request arrived, Time when the stage was reached.
	Received, Time time.Time
}

// rawAuditEvent is the part of audit.k8s.io/v1 Event that AuditEvent keeps.
type rawAuditEvent struct {
	Stage, Verb, RequestURI, UserAgent string
	User                               struct {
		Username string
		Groups   []string
	}
	ObjectRef struct {
		APIGroup, Resource, Subresource, Namespace, Name string
	}
	ResponseStatus           struct{ Code int }
	Annotations              map[string]string
	RequestReceivedTimestamp time.Time
	StageTimestamp           time.Time
}

func auditLogPath(dir string) string { return filepath.Join(dir, "audit.log") }

// AuditEvents reads the whole audit log, in the order of its lines.
func (c *Cluster) AuditEvents() ([]AuditEvent, error) {
	f, err := os.Open(c.AuditLog)
	if err != nil {
		return nil, fmt.Errorf("reading the audit log: %w", err)
	}
	defer f.Close()
	return ParseAudit(f)
}

// ParseAudit reads an audit log. A last line without an end is one that is being
// written, and left out.
func ParseAudit(log io.Reader) ([]AuditEvent, error) {
	var events []AuditEvent
	reader := bufio.NewReaderSize(log, 1<<16)
	for line := 1; ; line++ {
		data, err := reader.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return events, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading the audit log: %w", err)
		}
		if len(bytes.TrimSpace(data)) == 0 {
			continue
		}
		var raw rawAuditEvent
		if err := json.Unmarshal(data, &raw); err != nil {
			return nil, fmt.Errorf("line %d of the audit log: %w", line, err)
		}
		events = append(events, raw.event())
	}
}

func (r rawAuditEvent) event() AuditEvent {
	return AuditEvent{
		Stage: r.Stage, Verb: r.Verb, URI: r.RequestURI, UserAgent: r.UserAgent,
		User: r.User.Username, Groups: r.User.Groups,
		APIGroup: r.ObjectRef.APIGroup, Resource: r.ObjectRef.Resource, Subresource: r.ObjectRef.Subresource,
		Namespace: r.ObjectRef.Namespace, Name: r.ObjectRef.Name,
		Code:     r.ResponseStatus.Code,
		Decision: r.Annotations["authorization.k8s.io/decision"],
		Reason:   r.Annotations["authorization.k8s.io/reason"],
		Received: r.RequestReceivedTimestamp, Time: r.StageTimestamp,
	}
}
