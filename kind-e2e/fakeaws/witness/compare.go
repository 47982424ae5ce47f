// SPDX-License-Identifier: Apache-2.0

package witness

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/smithy-go"
)

// Difference is a field that the fake fills otherwise than moto.
type Difference struct {
	Path       string // Reservations[].Instances[].State.Name
	Fake, Moto string // as JSON; Moto is empty if it lacks the field
}

func (d Difference) String() string {
	if d.Moto == "" {
		return fmt.Sprintf("%s is %s, moto has no such field", d.Path, d.Fake)
	}
	return fmt.Sprintf("%s is %s, moto has %s", d.Path, d.Fake, d.Moto)
}

// Compare compares what a call returned in both worlds: errors by their code, replies field by field. Identifiers, times
// and other things that each world chooses are equal if they look alike.
func Compare(fake, moto any, fakeErr, motoErr error) ([]Difference, int) {
	if fakeErr != nil || motoErr != nil {
		f, m := errorCode(fakeErr), errorCode(motoErr)
		if f != m {
			return []Difference{{Path: "error", Fake: f, Moto: m}}, 1
		}
		return nil, 1
	}
	ours, theirs := flat(fake), flat(moto)
	var differences []Difference
	for _, path := range slices.Sorted(maps.Keys(ours)) {
		if want := theirs[path]; want != ours[path] {
			differences = append(differences, Difference{Path: path, Fake: ours[path], Moto: want})
		}
	}
	return differences, len(ours)
}

// errorCode is an error's code in quotes, as values are.
func errorCode(err error) string {
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return fmt.Sprintf("%q", api.ErrorCode())
	}
	if err != nil {
		return fmt.Sprintf("%q", err.Error())
	}
	return `"none"`
}

// flat gives every field of a decoded struct that is not empty, by its path. Lists of scalars are sorted, those of
// structures keyed by what names their members.
func flat(value any) map[string]string {
	raw, err := json.Marshal(value)
	if err != nil {
		return map[string]string{"": fmt.Sprintf("%q", err.Error())}
	}
	var tree any
	if err := json.Unmarshal(raw, &tree); err != nil {
		return map[string]string{"": fmt.Sprintf("%q", err.Error())}
	}
	fields := map[string]string{}
	walk(tree, "", fields)
	return fields
}

func walk(value any, path string, into map[string]string) {
	switch v := value.(type) {
	case nil:
	case map[string]any:
		for key, item := range v {
			if key == "ResultMetadata" {
				continue
			}
			walk(item, strings.TrimPrefix(path+"."+key, "."), into)
		}
	case []any:
		walkList(v, path, into)
	case string:
		if v != "" {
			into[path] = fmt.Sprintf("%q", alike(v))
		}
	default:
		text, err := json.Marshal(v)
		if err == nil && string(text) != "0" && string(text) != "false" {
			into[path] = string(text)
		}
	}
}

// names are fields by which members of a list are told apart.
var names = []string{"InstanceType", "Key", "Name", "InstanceProfileName", "AvailabilityZone", "NetworkCardIndex", "LaunchTemplateName", "MessageId"}

func walkList(items []any, path string, into map[string]string) {
	var scalars []string
	for i, item := range items {
		fields, ok := item.(map[string]any)
		if !ok {
			scalars = append(scalars, fmt.Sprint(item))
			continue
		}
		walk(item, path+"["+label(fields, i, len(items))+"]", into)
	}
	if len(scalars) > 0 {
		for i := range scalars {
			scalars[i] = alike(scalars[i])
		}
		slices.Sort(scalars)
		into[path] = fmt.Sprintf("%q", scalars)
	}
}

// label tells a member of a list apart: by what names it, else by where it stands. The only one needs none.
func label(fields map[string]any, i, of int) string {
	if key, tag := fields["Key"].(string); tag {
		return key
	}
	if of == 1 {
		return ""
	}
	for _, name := range names {
		if value := fields[name]; value != nil {
			return alike(fmt.Sprint(value))
		}
	}
	return fmt.Sprint(i)
}

// chosen are the things that each world chooses for itself.
var chosen = []struct {
	looks *regexp.Regexp
	as    string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`), "<time>"},
	{regexp.MustCompile(`\bfleet-[0-9a-f-]{36}\b`), "fleet-<id>"},
	{regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`), "<uuid>"},
	{regexp.MustCompile(`\b(i|ami|lt|eni|sg|subnet|vpc|snap|vol|r|sir)-([0-9a-f]{17}|[0-9a-f]{8})\b`), "$1-<id>"},
	{regexp.MustCompile(`^https?://[^/]+/?`), "<host>/"},
	{regexp.MustCompile(`\bip-[0-9-]+\.`), "ip-<address>."},
	{regexp.MustCompile(`\b\d+\.\d+\.\d+\.\d+(/\d+)?\b`), "<address>"},
	{regexp.MustCompile(`\bA(IPA|ROA)[A-Za-z0-9-]+\b`), "A$1<id>"},
	{regexp.MustCompile(`\b(111122223333|123456789012)\b`), "<account>"},
	{regexp.MustCompile(`^\d{13}$`), "<milliseconds>"},
}

func alike(text string) string {
	for _, c := range chosen {
		text = c.looks.ReplaceAllString(text, c.as)
	}
	return text
}
