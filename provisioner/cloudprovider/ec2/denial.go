// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"encoding/json"
	"regexp"
	"strings"
	"unicode"
)

// denial is what AWS says of a call that it does not permit.
type denial struct {
	// action is the missing permission as IAM names it, resource what it was missing on; both may be unknown.
	action, resource string
	principal        string
	// why is a few words on which kind of policy denies.
	why string
	// encoded is the part that only sts:DecodeAuthorizationMessage can read.
	encoded string
}

const encodedMark = "Encoded authorization failure message:"

var (
	deniedAction   = regexp.MustCompile(`is not authorized to perform: ([a-zA-Z0-9-]+:[a-zA-Z0-9*]+)`)
	deniedResource = regexp.MustCompile(`on resource: (\S+)`)
	deniedUser     = regexp.MustCompile(`User: (\S+)`)
	encodedPart    = regexp.MustCompile(`^[A-Za-z0-9+/=_-]+`)
)

// parseDenial reads an authorization failure; what it does not say stays empty.
func parseDenial(message string) denial {
	var d denial
	plain, rest, _ := strings.Cut(message, encodedMark)
	d.encoded = encodedPart.FindString(strings.TrimSpace(rest))
	first := func(pattern *regexp.Regexp) string {
		if m := pattern.FindStringSubmatch(plain); m != nil {
			return strings.TrimRight(m[1], ".,;")
		}
		return ""
	}
	d.action, d.resource, d.principal = first(deniedAction), first(deniedResource), first(deniedUser)
	d.why = denialCause(plain)
	return d
}

func denialCause(message string) string {
	lower := strings.ToLower(message)
	switch {
	case strings.Contains(lower, "permissions boundary"):
		return "a permissions boundary does not allow it"
	case strings.Contains(lower, "service control policy"):
		return "a service control policy of the organization denies it"
	case strings.Contains(lower, "resource control policy"):
		return "a resource control policy of the organization denies it"
	case strings.Contains(lower, "vpc endpoint policy"):
		return "the policy of a VPC endpoint does not allow it"
	case strings.Contains(lower, "explicit deny"):
		return "a policy denies it explicitly"
	case strings.Contains(lower, "no identity-based policy"):
		return "no policy of the role allows it"
	}
	return ""
}

// decoded adds what sts:DecodeAuthorizationMessage returned. Text that is not its JSON adds nothing.
func (d denial) decoded(text string) denial {
	var message struct {
		ExplicitDeny bool `json:"explicitDeny"`
		Context      struct {
			Principal struct {
				ARN string `json:"arn"`
			} `json:"principal"`
			Action   string `json:"action"`
			Resource string `json:"resource"`
		} `json:"context"`
	}
	if json.Unmarshal([]byte(text), &message) != nil {
		return d
	}
	take := func(field *string, value string) {
		if value != "" && !strings.ContainsFunc(value, unicode.IsControl) {
			*field = value
		}
	}
	take(&d.action, message.Context.Action)
	take(&d.resource, message.Context.Resource)
	take(&d.principal, message.Context.Principal.ARN)
	switch {
	case d.why != "":
	case message.ExplicitDeny:
		d.why = "a policy denies it explicitly"
	case message.Context.Action != "":
		d.why = "no policy of the role allows it"
	}
	return d
}

// sentence names the call that was made, the permission that it lacks and where: ec2:CreateFleet is refused without
// ec2:RunInstances on an image as well.
func (d denial) sentence(call, message string) string {
	s := "not authorized to call " + call
	switch {
	case d.action != "" && d.resource != "":
		s += ": missing permission " + d.action + " on " + d.resource
	case d.action != "":
		s += ": missing permission " + d.action
	case d.encoded != "":
		s += ": " + withoutSecrets(message) + " (grant sts:DecodeAuthorizationMessage to see which permission is missing)"
	default:
		s += ": " + withoutSecrets(message)
	}
	if d.why != "" && d.action != "" {
		s += ": " + d.why
	}
	return s
}
