// SPDX-License-Identifier: Apache-2.0

package fakeaws

import "strings"

// getParameter is SSM GetParameter.
func getParameter(s *Server, r *request) (any, error) {
	name := r.params["Name"]
	s.mu.Lock()
	found, ok := s.parameters[name]
	s.mu.Unlock()
	if !ok {
		return nil, errorf("ParameterNotFound", "Parameter %s not found.", name)
	}
	owner := s.opts.AccountID
	if strings.HasPrefix(name, "/aws/") {
		owner = "" // public
	}
	return map[string]any{"Parameter": map[string]any{
		"Name": found.name, "Type": "String", "Value": found.value, "Version": found.version, "DataType": "text",
		"ARN": "arn:aws:ssm:" + s.opts.Region + ":" + owner + ":parameter" + found.name,
	}}, nil
}

// SetParameter makes a parameter, or a new version of one: a new AMI is released by changing what "recommended" says.
func (s *Server) SetParameter(name, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addParameter(name, value, s.parameters[name].version+1)
}
