// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"slices"
	"time"
)

// CapacityReservation is an on-demand capacity reservation of the account.
type CapacityReservation struct {
	ID           string
	InstanceType string
	Zone         string
	Total        int
	Available    int
	Criteria     string // open or targeted
	Tags         map[string]string
	StartedAt    time.Time
}

// PlacementGroup is a placement group of the account.
type PlacementGroup struct {
	ID, Name, Strategy string // strategy cluster, partition or spread
	Partitions         int
}

// AddCapacityReservation adds a reservation; an empty id gets one, which is returned.
func (s *Server) AddCapacityReservation(reservation CapacityReservation) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if reservation.ID == "" {
		reservation.ID = s.hexID("cr-")
	}
	if reservation.StartedAt.IsZero() {
		reservation.StartedAt = time.Now()
	}
	s.reservations = append(s.reservations, &reservation)
	return reservation.ID
}

// AddPlacementGroup adds a placement group; an empty id gets one, which is returned.
func (s *Server) AddPlacementGroup(group PlacementGroup) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if group.ID == "" {
		group.ID = s.hexID("pg-")
	}
	s.placements = append(s.placements, &group)
	return group.ID
}

// targetReservation is the id of the reservation that launches from the template must go to, if any.
func (t *launchTemplate) targetReservation() string {
	return t.data["CapacityReservationSpecification.CapacityReservationTarget.CapacityReservationId"]
}

// reservationFor finds the reservation that the template targets; nil if it targets none.
func (s *Server) reservationFor(p *pool) (*CapacityReservation, *apiError) {
	id := p.template.targetReservation()
	if id == "" {
		return nil, nil
	}
	for _, reservation := range s.reservations {
		if reservation.ID != id {
			continue
		}
		if reservation.InstanceType != p.it.Name || reservation.Zone != p.subnet.zone {
			return nil, errorf("InvalidParameterValue", "The capacity reservation %s is for %s in %s", id, reservation.InstanceType, reservation.Zone)
		}
		return reservation, nil
	}
	return nil, errorf("InvalidCapacityReservationId.NotFound", "The capacity reservation '%s' does not exist", id)
}

type capacityReservationItem struct {
	ID            string    `xml:"capacityReservationId"`
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
	ids, filters := r.form.list("CapacityReservationId"), r.form.filters()
	if len(ids) > 0 && r.form.get("MaxResults") != "" {
		return nil, errorf("InvalidParameterCombination", "The parameter CapacityReservationIds cannot be used with the parameter MaxResults")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		if !slices.ContainsFunc(s.reservations, func(cr *CapacityReservation) bool { return cr.ID == id }) {
			return nil, errorf("InvalidCapacityReservationId.NotFound", "The capacity reservation '%s' does not exist", id)
		}
	}
	if r.form.bool("DryRun") {
		return nil, errDryRun()
	}
	var found []capacityReservationItem
	for _, cr := range s.reservations {
		criteria := orDefault(cr.Criteria, "targeted")
		ok, err := matches(filters, cr.Tags, attributes{
			"state": {"active"}, "owner-id": {s.opts.AccountID}, "instance-match-criteria": {criteria}, "instance-type": {cr.InstanceType}, "availability-zone": {cr.Zone},
		})
		if err != nil {
			return nil, err
		}
		if ok && (len(ids) == 0 || slices.Contains(ids, cr.ID)) {
			found = append(found, capacityReservationItem{
				ID: cr.ID, OwnerID: s.opts.AccountID, InstanceType: cr.InstanceType, Platform: linux, Zone: cr.Zone, ZoneID: zoneID(cr.Zone), Tenancy: "default",
				Total: cr.Total, Available: cr.Available, State: "active", StartDate: timestamp(cr.StartedAt), EndDateType: "unlimited", Criteria: criteria,
				Type: "default", Tags: tagItems(cr.Tags),
			})
		}
	}
	items, token, err := page(r.form, found, 1, 1000, 1000)
	return capacityReservationsReply{Reservations: items, NextToken: token}, err
}

type placementGroupItem struct {
	ID         string `xml:"groupId"`
	Name       string `xml:"groupName"`
	ARN        string `xml:"groupArn"`
	State      string `xml:"state"`
	Strategy   string `xml:"strategy"`
	Partitions int    `xml:"partitionCount,omitempty"`
}

type placementGroupsReply struct {
	Groups []placementGroupItem `xml:"placementGroupSet>item"`
}

func describePlacementGroups(s *Server, r *request) (any, error) {
	ids, names, filters := r.form.list("GroupId"), r.form.list("GroupName"), r.form.filters()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, wanted := range slices.Concat(ids, names) {
		if !slices.ContainsFunc(s.placements, func(g *PlacementGroup) bool { return g.ID == wanted || g.Name == wanted }) {
			return nil, errorf("InvalidPlacementGroup.Unknown", "The placement group '%s' is unknown.", wanted)
		}
	}
	if r.form.bool("DryRun") {
		return nil, errDryRun()
	}
	var reply placementGroupsReply
	for _, g := range s.placements {
		ok, err := matches(filters, nil, attributes{"state": {"available"}, "strategy": {g.Strategy}, "group-name": {g.Name}})
		if err != nil {
			return nil, err
		}
		if ok && (len(ids)+len(names) == 0 || slices.Contains(ids, g.ID) || slices.Contains(names, g.Name)) {
			reply.Groups = append(reply.Groups, placementGroupItem{
				ID: g.ID, Name: g.Name, ARN: "arn:aws:ec2:" + s.opts.Region + ":" + s.opts.AccountID + ":placement-group/" + g.Name,
				State: "available", Strategy: g.Strategy, Partitions: g.Partitions,
			})
		}
	}
	return reply, nil
}
