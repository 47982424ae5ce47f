// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"encoding/base64"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/fakeaws/userdata"
)

// LaunchTemplate is a launch template that exists.
type LaunchTemplate struct {
	ID        string            `json:"id"`
	Name      string            `json:"name"`
	CreatedAt time.Time         `json:"createdAt"`
	Tags      map[string]string `json:"tags"`
}

type launchTemplate struct {
	LaunchTemplate
	data     form // LaunchTemplateData
	userData []byte
}

// tokenReply remembers what a client token was used for.
type tokenReply[T any] struct {
	params string
	reply  T
}

// LaunchTemplates returns the templates that exist, oldest first.
func (s *Server) LaunchTemplates() []LaunchTemplate {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []LaunchTemplate{}
	for _, template := range s.sortedTemplates() {
		list = append(list, template.LaunchTemplate)
	}
	return list
}

func (s *Server) sortedTemplates() []*launchTemplate {
	var list []*launchTemplate
	for _, template := range s.templates {
		list = append(list, template)
	}
	slices.SortFunc(list, func(a, b *launchTemplate) int {
		if order := a.CreatedAt.Compare(b.CreatedAt); order != 0 {
			return order
		}
		return strings.Compare(a.ID, b.ID)
	})
	return list
}

type launchTemplateItem struct {
	ID        string    `xml:"launchTemplateId"`
	Name      string    `xml:"launchTemplateName"`
	CreatedAt string    `xml:"createTime"`
	CreatedBy string    `xml:"createdBy"`
	Default   int       `xml:"defaultVersionNumber"`
	Latest    int       `xml:"latestVersionNumber"`
	Tags      []tagItem `xml:"tagSet>item"`
}

func (s *Server) templateItem(template *launchTemplate) launchTemplateItem {
	return launchTemplateItem{
		ID: template.ID, Name: template.Name, CreatedAt: timestamp(template.CreatedAt), CreatedBy: "arn:aws:iam::" + s.opts.AccountID + ":user/fake",
		Default: 1, Latest: 1, Tags: tagItems(template.Tags),
	}
}

type launchTemplateReply struct {
	Template launchTemplateItem `xml:"launchTemplate"`
}

var templateName = regexp.MustCompile(`^[a-zA-Z0-9().\-/_]{3,128}$`)

func createLaunchTemplate(s *Server, r *request) (any, error) {
	userData, err := checkLaunchTemplate(r.form)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	name, token := r.form.get("LaunchTemplateName"), r.form.get("ClientToken")
	if before, ok := s.templateTokens[token]; ok && token != "" {
		if before.params != r.form.fingerprint() {
			return nil, errTokenMismatch(token)
		}
		return launchTemplateReply{Template: s.templateItem(before.reply)}, nil
	}
	if s.templateByName(name) != nil {
		return nil, errorf("InvalidLaunchTemplateName.AlreadyExistsException", "Launch template name already in use.")
	}
	if r.form.bool("DryRun") {
		return nil, errDryRun()
	}
	template := &launchTemplate{data: r.form.under("LaunchTemplateData"), userData: userData}
	template.ID, template.Name, template.CreatedAt = s.hexID("lt-"), name, time.Now()
	template.Tags = r.form.tagsFor("launch-template")
	s.templates[template.ID] = template
	s.templateTokens[token] = tokenReply[*launchTemplate]{params: r.form.fingerprint(), reply: template}
	return launchTemplateReply{Template: s.templateItem(template)}, nil
}

func checkLaunchTemplate(f form) (userData []byte, err error) {
	if name := f.get("LaunchTemplateName"); !templateName.MatchString(name) {
		return nil, errorf("InvalidLaunchTemplateName.MalformedException", "The launch template name '%s' is not valid.", name)
	}
	userData, err = base64.StdEncoding.DecodeString(f.get("LaunchTemplateData.UserData"))
	if err != nil {
		return nil, errorf("InvalidUserData.Malformed", "Invalid BASE64 encoding of user data.")
	}
	if len(userData) > userdata.Limit {
		return nil, errorf("InvalidUserData.Malformed", "User data is limited to %d bytes", userdata.Limit)
	}
	for _, specification := range f.each("TagSpecification") {
		if kind := specification["ResourceType"]; kind != "launch-template" {
			return nil, errorf("InvalidParameterValue", "'%s' is not a valid taggable resource type for this operation.", kind)
		}
	}
	return userData, nil
}

func (s *Server) templateByName(name string) *launchTemplate {
	for _, template := range s.templates {
		if template.Name == name {
			return template
		}
	}
	return nil
}

// visibleTemplate finds a template by id or name as EC2 would: not within the lag after its creation.
func (s *Server) visibleTemplate(id, name string) (*launchTemplate, error) {
	template := s.templates[id]
	if id == "" {
		template = s.templateByName(name)
	}
	if template != nil && time.Since(template.CreatedAt) >= s.settings.LaunchTemplateLag.Duration {
		return template, nil
	}
	if id != "" {
		return nil, errorf("InvalidLaunchTemplateId.NotFound", "The specified launch template, with template ID %s, does not exist.", id)
	}
	return nil, errorf("InvalidLaunchTemplateName.NotFoundException", "At least one of the launch templates specified in the request does not exist. (%s)", name)
}

type describeLaunchTemplatesReply struct {
	Templates []launchTemplateItem `xml:"launchTemplates>item"`
	NextToken string               `xml:"nextToken,omitempty"`
}

func describeLaunchTemplates(s *Server, r *request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids, names := r.form.list("LaunchTemplateId"), r.form.list("LaunchTemplateName")
	for _, id := range ids {
		if _, err := s.visibleTemplate(id, ""); err != nil {
			return nil, err
		}
	}
	for _, name := range names {
		if _, err := s.visibleTemplate("", name); err != nil {
			return nil, err
		}
	}
	if r.form.bool("DryRun") {
		return nil, errDryRun()
	}
	visible := slices.DeleteFunc(s.sortedTemplates(), func(template *launchTemplate) bool {
		_, err := s.visibleTemplate(template.ID, "")
		return err != nil
	})
	chosen, err := choose(r.form, slices.Concat(ids, names), visible, func(template *launchTemplate) facts {
		return facts{names: []string{template.ID, template.Name}, tags: template.Tags, attrs: attributes{
			"launch-template-name": {template.Name}, "create-time": {timestamp(template.CreatedAt)},
		}}
	})
	if err != nil {
		return nil, err
	}
	items, token, err := page(r.form, converted(chosen, s.templateItem), 1, 200, 200)
	return describeLaunchTemplatesReply{Templates: items, NextToken: token}, err
}

func deleteLaunchTemplate(s *Server, r *request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	template, err := s.visibleTemplate(r.form.get("LaunchTemplateId"), r.form.get("LaunchTemplateName"))
	if err != nil {
		return nil, err
	}
	if r.form.bool("DryRun") {
		return nil, errDryRun()
	}
	delete(s.templates, template.ID)
	return launchTemplateReply{Template: s.templateItem(template)}, nil
}

// deleteTemplates makes the templates that a fleet names vanish, if a fault says so; the caller holds the lock.
func (s *Server) deleteTemplates(r *request) {
	if !r.effect.deleteTemplates {
		return
	}
	for _, config := range r.form.each("LaunchTemplateConfigs") {
		specification := config.under("LaunchTemplateSpecification")
		if template, err := s.visibleTemplate(specification["LaunchTemplateId"], specification["LaunchTemplateName"]); err == nil {
			delete(s.templates, template.ID)
		}
	}
}
