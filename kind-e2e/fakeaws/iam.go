// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"maps"
	"slices"
	"strings"
	"time"
)

type instanceProfile struct {
	id, name, path, arn string
	roles               []string
	tags                map[string]string
	createdAt           time.Time
}

type roleItem struct {
	Path      string `xml:"Path"`
	Name      string `xml:"RoleName"`
	ID        string `xml:"RoleId"`
	ARN       string `xml:"Arn"`
	CreatedAt string `xml:"CreateDate"`
}

type iamTag struct {
	Key   string `xml:"Key"`
	Value string `xml:"Value"`
}

type profileItem struct {
	Path      string     `xml:"Path"`
	Name      string     `xml:"InstanceProfileName"`
	ID        string     `xml:"InstanceProfileId"`
	ARN       string     `xml:"Arn"`
	CreatedAt string     `xml:"CreateDate"`
	Roles     []roleItem `xml:"Roles>member"`
	Tags      []iamTag   `xml:"Tags>member"`
}

type profileReply struct {
	Profile profileItem `xml:"InstanceProfile"`
}

func (s *Server) roleExists(name string) bool {
	return s.opts.Roles == nil || slices.Contains(s.opts.Roles, name)
}

// role is the role that a request names.
func (s *Server) role(r *request) (string, error) {
	name := r.form.get("RoleName")
	if !s.roleExists(name) {
		return "", errorf("NoSuchEntity", "The role with name %s cannot be found.", name)
	}
	return name, nil
}

func (s *Server) roleItem(name string) roleItem {
	return roleItem{
		Path: "/", Name: name, ID: "AROA" + strings.ToUpper(name), ARN: "arn:aws:iam::" + s.opts.AccountID + ":role/" + name,
		CreatedAt: "2026-01-01T00:00:00Z",
	}
}

func (s *Server) profileItem(profile *instanceProfile) profileItem {
	item := profileItem{
		Path: profile.path, Name: profile.name, ID: profile.id, ARN: profile.arn, CreatedAt: profile.createdAt.UTC().Format(time.RFC3339),
	}
	for _, role := range profile.roles {
		item.Roles = append(item.Roles, s.roleItem(role))
	}
	for _, key := range slices.Sorted(maps.Keys(profile.tags)) {
		item.Tags = append(item.Tags, iamTag{Key: key, Value: profile.tags[key]})
	}
	return item
}

// profileVisible says whether EC2 knows the profile yet; the caller holds the lock.
func (s *Server) profileVisible(name string) bool {
	profile := s.profiles[name]
	return profile != nil && time.Since(profile.createdAt) >= s.settings.ProfileLag.Duration
}

// profile finds the instance profile that a request names; the caller holds the lock.
func (s *Server) profile(r *request) (*instanceProfile, error) {
	name := r.form.get("InstanceProfileName")
	if profile := s.profiles[name]; profile != nil {
		return profile, nil
	}
	return nil, errorf("NoSuchEntity", "Instance Profile %s cannot be found.", name)
}

func createInstanceProfile(s *Server, r *request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name, path := r.form.get("InstanceProfileName"), orDefault(r.form.get("Path"), "/")
	if name == "" || len(name) > 128 {
		return nil, errorf("ValidationError", "The instance profile name '%s' must have 1 to 128 characters", name)
	}
	if s.profiles[name] != nil {
		return nil, errorf("EntityAlreadyExists", "Instance Profile %s already exists.", name)
	}
	profile := &instanceProfile{
		id: "AIPA" + strings.ToUpper(s.hexID("")), name: name, path: path, createdAt: time.Now(), tags: iamTags(r.form),
		arn: "arn:aws:iam::" + s.opts.AccountID + ":instance-profile" + path + name,
	}
	s.profiles[name] = profile
	return profileReply{Profile: s.profileItem(profile)}, nil
}

func iamTags(f form) map[string]string {
	tags := map[string]string{}
	for _, tag := range f.each("Tags.member") {
		tags[tag["Key"]] = tag["Value"]
	}
	return tags
}

func getInstanceProfile(s *Server, r *request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	profile, err := s.profile(r)
	if err != nil {
		return nil, err
	}
	return profileReply{Profile: s.profileItem(profile)}, nil
}

func deleteInstanceProfile(s *Server, r *request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	profile, err := s.profile(r)
	if err != nil {
		return nil, err
	}
	if len(profile.roles) > 0 {
		return nil, errorf("DeleteConflict", "Cannot delete entity, must remove roles from instance profile first.")
	}
	delete(s.profiles, profile.name)
	return nil, nil
}

func tagInstanceProfile(s *Server, r *request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	profile, err := s.profile(r)
	if err != nil {
		return nil, err
	}
	merged := maps.Clone(profile.tags)
	maps.Copy(merged, iamTags(r.form))
	if len(merged) > maxTags {
		return nil, errorf("LimitExceeded", "The number of tags has reached the maximum limit of %d.", maxTags)
	}
	profile.tags = merged
	return nil, nil
}

func addRoleToInstanceProfile(s *Server, r *request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	profile, err := s.profile(r)
	if err != nil {
		return nil, err
	}
	role, err := s.role(r)
	if err != nil {
		return nil, err
	}
	if len(profile.roles) > 0 {
		return nil, errorf("LimitExceeded", "Cannot exceed quota for InstanceSessionsPerInstanceProfile: 1")
	}
	profile.roles = []string{role}
	return nil, nil
}

func removeRoleFromInstanceProfile(s *Server, r *request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	profile, err := s.profile(r)
	if err != nil {
		return nil, err
	}
	role := r.form.get("RoleName")
	if !slices.Contains(profile.roles, role) {
		return nil, errorf("NoSuchEntity", "The role with name %s cannot be found.", role)
	}
	profile.roles = nil
	return nil, nil
}

type listProfilesReply struct {
	Profiles    []profileItem `xml:"InstanceProfiles>member"`
	IsTruncated bool          `xml:"IsTruncated"`
	Marker      string        `xml:"Marker,omitempty"`
}

func listInstanceProfiles(s *Server, r *request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []profileItem
	for _, name := range slices.Sorted(maps.Keys(s.profiles)) {
		if strings.HasPrefix(s.profiles[name].path, r.form.get("PathPrefix")) {
			found = append(found, s.profileItem(s.profiles[name]))
		}
	}
	paging := form{"NextToken": r.form.get("Marker"), "MaxResults": r.form.get("MaxItems")}
	items, marker, err := page(paging, found, 1, 1000, 100)
	return listProfilesReply{Profiles: items, IsTruncated: marker != "", Marker: marker}, err
}

type roleReply struct {
	Role roleItem `xml:"Role"`
}

func getRole(s *Server, r *request) (any, error) {
	name, err := s.role(r)
	if err != nil {
		return nil, err
	}
	return roleReply{Role: s.roleItem(name)}, nil
}
