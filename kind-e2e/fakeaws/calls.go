// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"maps"
	"time"
)

// Call is one AWS call in the log. Status 0 means that it is still being worked on; a call whose
// reply a fault withholds has the status of the reply, one that a fault drops has 499.
type Call struct {
	Seq        int               `json:"seq"`
	Time       time.Time         `json:"time"` // arrival
	AccessKey  string            `json:"accessKey"`
	Service    string            `json:"service"`
	Action     string            `json:"action"`
	Params     map[string]string `json:"params"` // flattened request keys
	Status     int               `json:"status"`
	Code       string            `json:"code"` // of the error, empty on success
	DurationMS int64             `json:"durationMs"`
	DryRun     bool              `json:"dryRun"`
	PoolErrors []PoolError       `json:"poolErrors,omitempty"` // what a CreateFleet reply says of pools that gave too little
}

// PoolError is why a pool of a CreateFleet gave fewer instances than were asked of it.
type PoolError struct {
	InstanceType string `json:"instanceType"`
	Zone         string `json:"zone"`
	CapacityType string `json:"capacityType"`
	SubnetID     string `json:"subnetId"`
	Code         string `json:"code"`
}

// Calls returns the log of all AWS calls in order of arrival.
func (s *Server) Calls() []Call { return s.callsSince(0) }

func (s *Server) callsSince(seq int) []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := []Call{}
	for _, call := range s.calls[min(max(seq, 0), len(s.calls)):] {
		calls = append(calls, *call)
	}
	return calls
}

func (s *Server) logCall(r *request) *Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	call := &Call{
		Seq: len(s.calls) + 1, Time: r.arrival, AccessKey: r.accessKey, Service: r.service, Action: r.action,
		Params: maps.Clone(r.params), DryRun: r.params["DryRun"] == "true",
	}
	r.seq = call.Seq
	s.calls = append(s.calls, call)
	return call
}

func (s *Server) finishCall(call *Call, r *request, status int, code string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	call.PoolErrors = r.refusals
	call.Status, call.Code, call.DurationMS = status, code, time.Since(call.Time).Milliseconds()
}
