// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"slices"
	"time"
)

// CapacityReservation is an on-demand capacity reservation, of the account or shared with it.
type CapacityReservation struct {
	ID            string            `json:"id"`
	OwnerID       string            `json:"ownerId"` // the account itself if empty
	InstanceType  string            `json:"instanceType"`
	Zone          string            `json:"zone"`
	Total         int               `json:"total"`
	Available     int               `json:"available"`
	Criteria      string            `json:"criteria"` // open or targeted, which is the default
	Type          string            `json:"type"`     // default or capacity-block
	Interruptible bool              `json:"interruptible"`
	State         string            `json:"state"` // active if empty; expired, cancelled…
	Tags          map[string]string `json:"tags"`
	StartedAt     time.Time         `json:"startedAt"`
	EndsAt        *time.Time        `json:"endsAt"` // nil: it has no end
}

// SetCapacityReservation adds a reservation, or replaces the one with its id; an empty id gets one, which is returned.
func (s *Server) SetCapacityReservation(reservation CapacityReservation) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if reservation.ID == "" {
		reservation.ID = s.hexID("cr-")
	}
	if reservation.StartedAt.IsZero() {
		reservation.StartedAt = time.Now()
	}
	if existing := s.reservation(reservation.ID); existing != nil {
		*existing = reservation // its instances point to it
		return reservation.ID
	}
	s.reservations = append(s.reservations, &reservation)
	return reservation.ID
}

// CapacityReservations returns all reservations.
func (s *Server) CapacityReservations() []CapacityReservation {
	s.mu.Lock()
	defer s.mu.Unlock()
	return converted(s.reservations, func(cr *CapacityReservation) CapacityReservation { return *cr })
}

func (s *Server) reservation(id string) *CapacityReservation {
	i := slices.IndexFunc(s.reservations, func(cr *CapacityReservation) bool { return cr.ID == id })
	if i < 0 {
		return nil
	}
	return s.reservations[i]
}

// state is what the reservation is in now: an active one expires at its end.
func (cr *CapacityReservation) state(now time.Time) string {
	state := orDefault(cr.State, "active")
	if state == "active" && cr.EndsAt != nil && !now.Before(*cr.EndsAt) {
		return "expired"
	}
	return state
}

// targetReservation is the id of the reservation that launches from the template must go to, if any.
func (t *launchTemplate) targetReservation() string {
	return t.data["CapacityReservationSpecification.CapacityReservationTarget.CapacityReservationId"]
}

// reservationFor finds the reservation that the launch uses; nil if it uses none.
func (s *Server) reservationFor(p *pool) (*CapacityReservation, *apiError) {
	id := p.template.targetReservation()
	if id == "" {
		return s.openReservation(p), nil
	}
	cr := s.reservation(id)
	switch {
	case cr == nil:
		return nil, errorf("InvalidCapacityReservationId.NotFound", "The capacity reservation '%s' does not exist", id)
	case cr.state(time.Now()) != "active":
		return nil, errorf("InvalidCapacityReservationState.Unavailable", "The capacity reservation '%s' is not active", id)
	case cr.InstanceType != p.it.Name || cr.Zone != p.subnet.zone:
		return nil, errorf("InvalidParameterValue", "The capacity reservation %s is for %s in %s", id, cr.InstanceType, cr.Zone)
	}
	return cr, nil
}

// openReservation is what EC2 uses for a launch that neither names a reservation nor opts out.
func (s *Server) openReservation(p *pool) *CapacityReservation {
	if orDefault(p.template.data["CapacityReservationSpecification.CapacityReservationPreference"], "open") != "open" {
		return nil
	}
	for _, cr := range s.reservations {
		if cr.Criteria == "open" && cr.Available > 0 && cr.InstanceType == p.it.Name && cr.Zone == p.subnet.zone && cr.state(time.Now()) == "active" {
			return cr
		}
	}
	return nil
}

type capacityReservationItem struct {
	ID            string    `xml:"capacityReservationId"`
	ARN           string    `xml:"capacityReservationArn"`
	OwnerID       string    `xml:"ownerId"`
	InstanceType  string    `xml:"instanceType"`
	Platform      string    `xml:"instancePlatform"`
	Zone          string    `xml:"availabilityZone"`
	ZoneID        string    `xml:"availabilityZoneId"`
	Tenancy       string    `xml:"tenancy"`
	Total         int       `xml:"totalInstanceCount"`
	Available     int       `xml:"availableInstanceCount"`
	State         string    `xml:"state"`
	StartDate     string    `xml:"startDate"`
	EndDate       string    `xml:"endDate,omitempty"`
	EndDateType   string    `xml:"endDateType"`
	Criteria      string    `xml:"instanceMatchCriteria"`
	Type          string    `xml:"reservationType"`
	Interruptible bool      `xml:"interruptible"`
	Tags          []tagItem `xml:"tagSet>item"`
}

type capacityReservationsReply struct {
	Reservations []capacityReservationItem `xml:"capacityReservationSet>item"`
	NextToken    string                    `xml:"nextToken,omitempty"`
}

func describeCapacityReservations(s *Server, r *request) (any, error) {
	ids := r.form.list("CapacityReservationId")
	if len(ids) > 0 && r.form.get("MaxResults") != "" {
		return nil, errorf("InvalidParameterCombination", "The parameter CapacityReservationIds cannot be used with the parameter MaxResults")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		if s.reservation(id) == nil {
			return nil, errorf("InvalidCapacityReservationId.NotFound", "The capacity reservation '%s' does not exist", id)
		}
	}
	if r.form.bool("DryRun") {
		return nil, errDryRun()
	}
	chosen, err := choose(r.form, ids, s.reservations, func(cr *CapacityReservation) facts {
		item := s.capacityReservationItem(cr)
		return facts{names: []string{cr.ID}, tags: cr.Tags, attrs: attributes{
			"state": {item.State}, "owner-id": {item.OwnerID}, "instance-match-criteria": {item.Criteria}, "instance-type": {cr.InstanceType},
			"availability-zone": {cr.Zone}, "availability-zone-id": {item.ZoneID}, "reservation-type": {item.Type}, "tenancy": {item.Tenancy},
		}}
	})
	if err != nil {
		return nil, err
	}
	items, token, err := page(r.form, converted(chosen, s.capacityReservationItem), 1, 1000, 1000)
	return capacityReservationsReply{Reservations: items, NextToken: token}, err
}

func (s *Server) capacityReservationItem(cr *CapacityReservation) capacityReservationItem {
	item := capacityReservationItem{
		ID: cr.ID, ARN: "arn:aws:ec2:" + s.opts.Region + ":" + s.opts.AccountID + ":capacity-reservation/" + cr.ID,
		OwnerID: orDefault(cr.OwnerID, s.opts.AccountID), InstanceType: cr.InstanceType, Platform: linux, Zone: cr.Zone, ZoneID: zoneID(cr.Zone),
		Tenancy: "default", Total: cr.Total, Available: cr.Available, State: cr.state(time.Now()), StartDate: timestamp(cr.StartedAt),
		EndDateType: "unlimited", Criteria: orDefault(cr.Criteria, "targeted"), Type: orDefault(cr.Type, "default"),
		Interruptible: cr.Interruptible, Tags: tagItems(cr.Tags),
	}
	if cr.EndsAt != nil {
		item.EndDate, item.EndDateType = timestamp(*cr.EndsAt), "limited"
	}
	return item
}

// lifecycle of the instances that use the reservation, as EC2 calls it.
func (cr *CapacityReservation) lifecycle() string {
	switch {
	case cr.Type == "capacity-block":
		return "capacity-block"
	case cr.Interruptible:
		return "interruptible-capacity-reservation"
	}
	return ""
}

// reservedTypes are the default target capacity types of a fleet that launches into reservations only.
var reservedTypes = map[string]string{"capacity-block": "capacity-block", "reserved-capacity": "interruptible-capacity-reservation"}
