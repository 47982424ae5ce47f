// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The kinds of warnings that AWS gives about a machine.
const (
	SpotInterruption        = "spot-interruption"
	RebalanceRecommendation = "rebalance-recommendation"
	ReservationInterruption = "reservation-interruption"
	ScheduledChange         = "scheduled-change"
)

// detailTypes are EventBridge's names of the kinds.
var detailTypes = map[string]string{
	SpotInterruption:        "EC2 Spot Instance Interruption Warning",
	RebalanceRecommendation: "EC2 Instance Rebalance Recommendation",
	ReservationInterruption: "EC2 Capacity Reservation Instance Interruption Warning",
	ScheduledChange:         "AWS Health Event",
}

const stateNotification = "EC2 Instance State-change Notification"

// Warning is what AWS says before it takes a machine.
type Warning struct {
	InstanceID string          `json:"instanceId"`
	Kind       string          `json:"kind"`
	Terminate  metav1.Duration `json:"terminateAfter"` // when the machine goes; 0 is never
}

// Warn puts a warning into the event queue and takes the machine when it is due. An unknown machine or kind is an error.
func (s *Server) Warn(w Warning) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	in := s.instances[w.InstanceID]
	if in == nil || detailTypes[w.Kind] == "" {
		return fmt.Errorf("no instance %q, or no kind %q", w.InstanceID, w.Kind)
	}
	detail := map[string]any{"instance-id": in.id}
	source := "aws.ec2"
	switch w.Kind {
	case SpotInterruption:
		detail["instance-action"] = "terminate"
	case ScheduledChange:
		source = "aws.health"
		detail = map[string]any{
			"service": "EC2", "eventTypeCategory": "scheduledChange", "eventTypeCode": "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED",
			"affectedEntities": []any{map[string]any{"entityValue": in.id}},
		}
	}
	s.emit(source, detailTypes[w.Kind], in, detail)
	if w.Terminate.Duration > 0 {
		s.spawnLocked(func() {
			if sleep(s.ctx, w.Terminate.Duration) {
				s.Interrupt(in.id)
			}
		})
	}
	return nil
}

// enter changes the state of an instance and tells so, as EventBridge does of every machine of the account; the caller
// holds the lock.
func (s *Server) enter(in *instance, state instanceState) {
	in.state = state
	s.emit("aws.ec2", stateNotification, in, map[string]any{"instance-id": in.id, "state": string(state)})
}

// emit puts an event into the event queue, if there is one.
func (s *Server) emit(source, detailType string, in *instance, detail map[string]any) {
	name := s.settings.EventQueue
	if name == "" {
		return
	}
	body, err := json.Marshal(map[string]any{
		"version": "0", "id": s.uuid(), "account": s.opts.AccountID, "region": s.opts.Region, "source": source, "detail-type": detailType,
		"resources": []string{"arn:aws:ec2:" + s.opts.Region + ":" + s.opts.AccountID + ":instance/" + in.id},
		"time":      time.Now().UTC().Format(time.RFC3339), "detail": detail,
	})
	if err != nil { // strings and lists of them always encode
		return
	}
	if s.queues[name] == nil {
		s.queues[name] = &queue{}
	}
	s.enqueue(s.queues[name], string(body))
}
