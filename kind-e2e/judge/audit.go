// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// AuditEvent is the part of an API server's audit event that is judged.
type AuditEvent struct {
	Time       time.Time `json:"requestReceivedTimestamp"`
	Stage      string    `json:"stage"`
	Verb       string    `json:"verb"`
	RequestURI string    `json:"requestURI"`
	UserAgent  string    `json:"userAgent"`
	User       struct {
		Username string              `json:"username"`
		Extra    map[string][]string `json:"extra"`
	} `json:"user"`
	ObjectRef struct {
		APIGroup    string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

// ReadAudit reads an audit log (one JSON event per line) and returns its
// ResponseComplete events. A line that is not JSON is an error, except a last
// one without its newline, which the server is still writing.
func ReadAudit(r io.Reader) ([]AuditEvent, error) {
	var events []AuditEvent
	reader := bufio.NewReader(r)
	for line := 1; ; line++ {
		data, err := reader.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("reading audit log: %w", err)
		}
		if err != nil {
			return events, nil
		}
		var event AuditEvent
		if err := json.Unmarshal(data, &event); err != nil {
			return nil, fmt.Errorf("reading audit log, line %d: %w", line, err)
		}
		if event.Stage == "ResponseComplete" {
			events = append(events, event)
		}
	}
}

// bookkeeping are resources whose writes decide nothing: the lease by which a
// former leader learns that it is one, reviews, and events, which kube-scheduler
// sends from a queue of its own.
var bookkeeping = []string{
	"events", "leases", "selfsubjectaccessreviews", "selfsubjectreviews", "subjectaccessreviews", "tokenreviews",
}

// mutating reports whether the request changed something that matters.
func (e *AuditEvent) mutating() bool {
	switch e.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
	default:
		return false
	}
	return e.ResponseStatus.Code < 400 && !slices.Contains(bookkeeping, e.ObjectRef.Resource)
}

// of reports whether the replica sent it.
func (e *AuditEvent) of(r *Replica) bool {
	if r.User == "" && r.UserAgent == "" && r.CredentialID == "" {
		return false
	}
	return (r.User == "" || r.User == e.User.Username) &&
		strings.Contains(e.UserAgent, r.UserAgent) &&
		(r.CredentialID == "" || slices.Contains(e.User.Extra["authentication.kubernetes.io/credential-id"], r.CredentialID))
}

// String is verb and object.
func (e *AuditEvent) String() string {
	resource := e.ObjectRef.Resource
	if e.ObjectRef.Subresource != "" {
		resource += "/" + e.ObjectRef.Subresource
	}
	return fmt.Sprintf("%s %s %s/%s", e.Verb, resource, e.ObjectRef.Namespace, e.ObjectRef.Name)
}
