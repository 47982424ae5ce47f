// SPDX-License-Identifier: Apache-2.0

package fakeaws

import "slices"

// PlacementGroup is a placement group of the account.
type PlacementGroup struct {
	ID         string            `json:"id"`
	Name       string            `json:"name"`
	Strategy   string            `json:"strategy"` // cluster, partition or spread
	Partitions int               `json:"partitions"`
	State      string            `json:"state"` // available if empty
	Tags       map[string]string `json:"tags"`
}

// SetPlacementGroup adds a placement group, or replaces the one with its id; an empty id gets one, which is returned.
func (s *Server) SetPlacementGroup(group PlacementGroup) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if group.ID == "" {
		group.ID = s.hexID("pg-")
	}
	if existing := s.placementGroup(group.ID); existing != nil {
		*existing = group
		return group.ID
	}
	s.placements = append(s.placements, &group)
	return group.ID
}

// placementGroup finds a group by id or name.
func (s *Server) placementGroup(wanted string) *PlacementGroup {
	i := slices.IndexFunc(s.placements, func(g *PlacementGroup) bool { return wanted != "" && (g.ID == wanted || g.Name == wanted) })
	if i < 0 {
		return nil
	}
	return s.placements[i]
}

const (
	spreadLimit    = 7 // running instances of a spread group per zone
	mostPartitions = 7
)

// place finds a place in the template's placement group, if it has one: the group, and the partition if it has those.
func (s *Server) place(p *pool) (group *PlacementGroup, partition int, failure *apiError) {
	data := p.template.data
	wanted := orDefault(data["Placement.GroupId"], data["Placement.GroupName"])
	if wanted == "" {
		return nil, 0, nil
	}
	group = s.placementGroup(wanted)
	if group == nil || orDefault(group.State, "available") != "available" {
		return nil, 0, errorf("InvalidPlacementGroup.Unknown", "The placement group '%s' is unknown.", wanted)
	}
	if !slices.Contains(newInstanceTypeItem(p.it).PlacementGroups, group.Strategy) {
		return nil, 0, errorf("Unsupported", "The instance type %s cannot be launched into a %s placement group.", p.it.Name, group.Strategy)
	}
	inZone, used := 0, map[int]int{}
	for _, in := range s.instances {
		if in.group != group || in.state == terminated {
			continue
		}
		if used[in.partition]++; in.subnet.zone == p.subnet.zone {
			inZone++
		} else if group.Strategy == "cluster" {
			return nil, 0, errorf("InsufficientInstanceCapacity", "The cluster placement group %s is in another Availability Zone.", group.Name)
		}
	}
	switch {
	case group.Strategy == "spread" && inZone >= spreadLimit:
		return nil, 0, errorf("InstanceLimitExceeded", "You have reached the limit of instances in this spread placement group (%d) in %s.", spreadLimit, p.subnet.zone)
	case group.Strategy == "partition":
		if partition = atoi(data["Placement.PartitionNumber"]); partition == 0 {
			partition = leastUsed(used, group.Partitions)
		}
	}
	return group, partition, nil
}

func leastUsed(used map[int]int, partitions int) int {
	least := 1
	for n := 2; n <= min(max(partitions, 1), mostPartitions); n++ {
		if used[n] < used[least] {
			least = n
		}
	}
	return least
}

type placementGroupItem struct {
	ID          string    `xml:"groupId"`
	Name        string    `xml:"groupName"`
	ARN         string    `xml:"groupArn"`
	State       string    `xml:"state"`
	Strategy    string    `xml:"strategy"`
	Partitions  int       `xml:"partitionCount,omitempty"`
	SpreadLevel string    `xml:"spreadLevel,omitempty"`
	Tags        []tagItem `xml:"tagSet>item"`
}

type placementGroupsReply struct {
	Groups []placementGroupItem `xml:"placementGroupSet>item"`
}

func describePlacementGroups(s *Server, r *request) (any, error) {
	listed := slices.Concat(r.form.list("GroupId"), r.form.list("GroupName"))
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, wanted := range listed {
		if s.placementGroup(wanted) == nil {
			return nil, errorf("InvalidPlacementGroup.Unknown", "The placement group '%s' is unknown.", wanted)
		}
	}
	if r.form.bool("DryRun") {
		return nil, errDryRun()
	}
	chosen, err := choose(r.form, listed, s.placements, func(g *PlacementGroup) facts {
		return facts{names: []string{g.ID, g.Name}, tags: g.Tags, attrs: attributes{
			"state": {orDefault(g.State, "available")}, "strategy": {g.Strategy}, "group-name": {g.Name},
		}}
	})
	return placementGroupsReply{Groups: converted(chosen, s.placementGroupItem)}, err
}

func (s *Server) placementGroupItem(g *PlacementGroup) placementGroupItem {
	item := placementGroupItem{
		ID: g.ID, Name: g.Name, ARN: "arn:aws:ec2:" + s.opts.Region + ":" + s.opts.AccountID + ":placement-group/" + g.Name,
		State: orDefault(g.State, "available"), Strategy: g.Strategy, Partitions: g.Partitions, Tags: tagItems(g.Tags),
	}
	if g.Strategy == "spread" {
		item.SpreadLevel = "rack"
	}
	return item
}
