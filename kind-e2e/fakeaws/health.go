// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"slices"
	"time"
)

// Health is what status checks and planned events say of an instance. The zero value is a healthy one.
type Health struct {
	Instance      string       `json:"instance"` // ok if empty, impaired, insufficient-data…
	System        string       `json:"system"`   // likewise
	EBS           string       `json:"ebs"`      // likewise
	ImpairedSince *time.Time   `json:"impairedSince"`
	Event         *HealthEvent `json:"event"`
}

// HealthEvent is something that EC2 plans to do with an instance.
type HealthEvent struct {
	Code        string    `json:"code"` // instance-retirement, instance-stop, system-reboot…
	Description string    `json:"description"`
	NotBefore   time.Time `json:"notBefore"`
}

// SetHealth changes what DescribeInstanceStatus tells of an instance; it reports false for an unknown id.
func (s *Server) SetHealth(id string, health Health) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	in := s.instances[id]
	if in == nil {
		return false
	}
	in.health = health
	return true
}

type instanceStatusItem struct {
	ID             string        `xml:"instanceId"`
	Zone           string        `xml:"availabilityZone"`
	ZoneID         string        `xml:"availabilityZoneId"`
	State          stateItem     `xml:"instanceState"`
	InstanceStatus statusItem    `xml:"instanceStatus"`
	SystemStatus   statusItem    `xml:"systemStatus"`
	EBSStatus      statusItem    `xml:"attachedEbsStatus"`
	Events         []statusEvent `xml:"eventsSet>item"`
}

type statusItem struct {
	Status  string       `xml:"status"`
	Details []statusPart `xml:"details>item"`
}

type statusPart struct {
	Name          string `xml:"name"`
	Status        string `xml:"status"`
	ImpairedSince string `xml:"impairedSince,omitempty"`
}

type statusEvent struct {
	ID          string `xml:"instanceEventId"`
	Code        string `xml:"code"`
	Description string `xml:"description"`
	NotBefore   string `xml:"notBefore"`
}

type describeInstanceStatusReply struct {
	Statuses  []instanceStatusItem `xml:"instanceStatusSet>item"`
	NextToken string               `xml:"nextToken,omitempty"`
}

func describeInstanceStatus(s *Server, r *request) (any, error) {
	ids := r.form.list("InstanceId")
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.instancesByID(ids, s.visible); err != nil {
		return nil, err
	}
	if r.form.bool("DryRun") {
		return nil, errDryRun()
	}
	candidates := slices.DeleteFunc(slices.Clone(s.launched), func(in *instance) bool {
		return !s.visible(in) || r.effect.omits(in) || (in.state != running && !r.form.bool("IncludeAllInstances"))
	})
	chosen, err := choose(r.form, ids, candidates, func(in *instance) facts {
		return facts{names: []string{in.id}, tags: in.tags, attrs: s.statusAttributes(in)}
	})
	if err != nil {
		return nil, err
	}
	items, token, err := page(r.form, converted(chosen, s.instanceStatusItem), 5, 1000, 1000)
	return describeInstanceStatusReply{Statuses: items, NextToken: token}, err
}

func (s *Server) statusAttributes(in *instance) attributes {
	item, attrs := s.instanceStatusItem(in), s.attributesOf(in)
	attrs["instance-status.status"], attrs["system-status.status"] = []string{item.InstanceStatus.Status}, []string{item.SystemStatus.Status}
	attrs["attached-ebs-status.status"] = []string{item.EBSStatus.Status}
	attrs["instance-status.reachability"] = []string{item.InstanceStatus.Details[0].Status}
	attrs["system-status.reachability"] = []string{item.SystemStatus.Details[0].Status}
	attrs["event.code"], attrs["event.description"] = nil, nil
	for _, event := range item.Events {
		attrs["event.code"] = append(attrs["event.code"], event.Code)
		attrs["event.description"] = append(attrs["event.description"], event.Description)
	}
	return attrs
}

func (s *Server) instanceStatusItem(in *instance) instanceStatusItem {
	item := instanceStatusItem{
		ID: in.id, Zone: in.subnet.zone, ZoneID: in.subnet.zoneID, State: newStateItem(in.state),
		InstanceStatus: in.health.status(in.health.Instance), SystemStatus: in.health.status(in.health.System), EBSStatus: in.health.status(in.health.EBS),
	}
	if event := in.health.Event; event != nil {
		item.Events = []statusEvent{{
			ID: "instance-event-" + in.id[2:], Code: event.Code, Description: event.Description, NotBefore: timestamp(event.NotBefore),
		}}
	}
	return item
}

func (h *Health) status(status string) statusItem {
	part := statusPart{Name: "reachability", Status: "passed"}
	if status = orDefault(status, "ok"); status != "ok" {
		if part.Status = "failed"; h.ImpairedSince != nil {
			part.ImpairedSince = timestamp(*h.ImpairedSince)
		}
	}
	return statusItem{Status: status, Details: []statusPart{part}}
}
