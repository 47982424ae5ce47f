// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"maps"
	"slices"
	"strings"
)

type stateChange struct {
	ID       string    `xml:"instanceId"`
	Current  stateItem `xml:"currentState"`
	Previous stateItem `xml:"previousState"`
}

type terminateInstancesReply struct {
	Changes []stateChange `xml:"instancesSet>item"`
}

func exists(in *instance) bool { return in != nil && !in.forgotten }

func terminateInstances(s *Server, r *request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, err := s.instancesByID(r.form.list("InstanceId"), exists)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, errorf("MissingParameter", "The request must contain the parameter InstanceId")
	}
	if r.form.bool("DryRun") {
		return nil, errDryRun()
	}
	var reply terminateInstancesReply
	for _, in := range found {
		before := in.state
		s.terminate(in, stateReason{Code: "Client.UserInitiatedShutdown", Message: "Client.UserInitiatedShutdown: User initiated shutdown"})
		reply.Changes = append(reply.Changes, stateChange{ID: in.id, Current: newStateItem(in.state), Previous: newStateItem(before)})
	}
	return reply, nil
}

type returnReply struct {
	Return bool `xml:"return"`
}

func rebootInstances(s *Server, r *request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.instancesByID(r.form.list("InstanceId"), exists); err != nil {
		return nil, err
	}
	if r.form.bool("DryRun") {
		return nil, errDryRun()
	}
	return returnReply{Return: true}, nil
}

func createTags(s *Server, r *request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []*instance
	for _, id := range r.form.list("ResourceId") {
		if !strings.HasPrefix(id, "i-") {
			return nil, errorf("InvalidID", "The ID '%s' is not valid: this endpoint tags instances only", id)
		}
		in, err := s.instancesByID([]string{id}, s.visible)
		if err != nil {
			return nil, err
		}
		found = append(found, in...)
	}
	tags := r.form.tags()
	for key := range tags {
		if strings.HasPrefix(key, "aws:") {
			return nil, errorf("InvalidParameterValue", "Tag keys starting with 'aws:' are reserved for internal use")
		}
	}
	for _, in := range found {
		merged := maps.Clone(in.tags)
		maps.Copy(merged, tags)
		own := slices.DeleteFunc(slices.Collect(maps.Keys(merged)), func(key string) bool { return strings.HasPrefix(key, "aws:") })
		if len(own) > maxTags {
			return nil, errorf("TagLimitExceeded", "The maximum number of tags per resource is %d.", maxTags)
		}
	}
	if r.form.bool("DryRun") {
		return nil, errDryRun()
	}
	for _, in := range found {
		maps.Copy(in.tags, tags)
	}
	return returnReply{Return: true}, nil
}

// runInstances serves dry runs: whether a launch from a template would be allowed.
func runInstances(s *Server, r *request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	template, err := s.visibleTemplate(r.form.get("LaunchTemplate.LaunchTemplateId"), r.form.get("LaunchTemplate.LaunchTemplateName"))
	if err != nil {
		return nil, err
	}
	if err := checkTagSpecifications(r.form, "instance", "volume", "network-interface", "spot-instances-request"); err != nil {
		return nil, err
	}
	override := form{"InstanceType": r.form.get("InstanceType"), "SubnetId": r.form.get("SubnetId"), "ImageId": r.form.get("ImageId")}
	if interfaces := r.form.each("NetworkInterface"); override["SubnetId"] == "" && len(interfaces) > 0 {
		override["SubnetId"] = interfaces[0]["SubnetId"]
	}
	if override["SubnetId"] == "" {
		override["SubnetId"] = s.subnets[0].id
	}
	if p := s.newPool(template, override); p.err != nil {
		return nil, p.err
	}
	if !r.form.bool("DryRun") {
		return nil, errorf("UnsupportedOperation", "This endpoint launches through CreateFleet only")
	}
	return nil, errDryRun()
}
