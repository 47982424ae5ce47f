// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Rule is a fault. The empty matcher fields match everything. Service "node" with actions Join and
// Ready matches what machines do: an error code, or dropRequest, means that they never do it.
type Rule struct {
	ID           string `json:"id"`
	Service      string `json:"service"`
	Action       string `json:"action"`
	InstanceType string `json:"instanceType"`
	Zone         string `json:"zone"`
	CapacityType string `json:"capacityType"`
	AccessKey    string `json:"accessKey"`

	Times       int     `json:"times"`       // how often it fires; 0 is without end
	Probability float64 `json:"probability"` // 0 means 1

	Code    string `json:"code"` // empty: no error
	Message string `json:"message"`
	Status  int    `json:"status"`  // HTTP status; 0 is the usual one of the code
	PerPool bool   `json:"perPool"` // fail the matching pools of a CreateFleet, not the call

	Delay         metav1.Duration `json:"delay"`         // wait before acting
	WithholdReply bool            `json:"withholdReply"` // act, hang, reset the connection
	DropRequest   bool            `json:"dropRequest"`   // reset the connection before acting

	Fired int `json:"fired"`
}

// SetFault adds a rule and returns its id. Rules apply in the order in which they were added.
func (s *Server) SetFault(rule Rule) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faultSeq++
	rule.ID, rule.Fired = strconv.Itoa(s.faultSeq), 0
	s.faults = append(s.faults, &rule)
	return rule.ID
}

// Faults returns all rules with how often each has fired.
func (s *Server) Faults() []Rule {
	s.mu.Lock()
	defer s.mu.Unlock()
	rules := []Rule{}
	for _, rule := range s.faults {
		rules = append(rules, *rule)
	}
	return rules
}

// DeleteFault removes one rule, or all of them if id is empty.
func (s *Server) DeleteFault(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = slices.DeleteFunc(s.faults, func(rule *Rule) bool { return id == "" || rule.ID == id })
}

// subject is what rules are matched against.
type subject struct {
	service, action, accessKey       string
	instanceTypes, zones, capacities []string
	perPool                          bool
}

func (r *Rule) concerns(of subject) bool {
	in := func(want string, have []string) bool { return want == "" || slices.Contains(have, want) }
	return r.PerPool == of.perPool && (r.Times == 0 || r.Fired < r.Times) &&
		in(r.Service, []string{of.service}) && in(r.Action, []string{of.action}) && in(r.AccessKey, []string{of.accessKey}) &&
		in(r.InstanceType, of.instanceTypes) && in(r.Zone, of.zones) && in(r.CapacityType, of.capacities)
}

// effect is the sum of the rules that fired.
type effect struct {
	delay    time.Duration
	err      *apiError
	withhold bool
	drop     bool
}

// fireLocked counts and adds up the rules that concern the subject. The first error wins.
func (s *Server) fireLocked(of subject) effect {
	var sum effect
	for _, rule := range s.faults {
		if !rule.concerns(of) || (rule.Probability > 0 && rule.Probability < 1 && s.random.Float64() >= rule.Probability) {
			continue
		}
		rule.Fired++
		sum.delay += rule.Delay.Duration
		sum.withhold = sum.withhold || rule.WithholdReply
		sum.drop = sum.drop || rule.DropRequest
		if rule.Code != "" && sum.err == nil {
			sum.err = &apiError{Code: rule.Code, Message: rule.Message, Status: rule.Status}
			if rule.Message == "" {
				sum.err.Message = fmt.Sprintf("injected by fault %s", rule.ID)
			}
		}
	}
	return sum
}

func (s *Server) fire(of subject) effect {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fireLocked(of)
}

// subjectOf names the types, zones and capacity types that a call speaks of.
func (s *Server) subjectOf(r *request) subject {
	of := subject{service: r.service, action: r.action, accessKey: r.accessKey}
	if r.service != "ec2" {
		return of
	}
	addPool := func(pool form) {
		of.instanceTypes = append(of.instanceTypes, pool.get("InstanceType"))
		zone := pool.get("AvailabilityZone")
		if sn := s.subnetByID(pool.get("SubnetId")); sn != nil {
			zone = sn.zone
		}
		of.zones = append(of.zones, zone)
	}
	addPool(r.form)
	for _, config := range r.form.each("LaunchTemplateConfigs") {
		for _, override := range config.each("Overrides") {
			addPool(override)
		}
	}
	if capacity := r.form.get("TargetCapacitySpecification.DefaultTargetCapacityType"); capacity != "" {
		of.capacities = []string{capacity}
	}
	for _, id := range r.form.list("InstanceId") {
		s.mu.Lock()
		if in := s.instances[id]; in != nil {
			of.instanceTypes = append(of.instanceTypes, in.it.Name)
			of.zones = append(of.zones, in.subnet.zone)
			of.capacities = append(of.capacities, in.capacityType)
		}
		s.mu.Unlock()
	}
	return of
}
