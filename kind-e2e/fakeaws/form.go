// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"encoding/base64"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// form is a flat query: keys such as Filter.1.Value.2.
type form map[string]string

func (f form) get(key string) string { return f[key] }

func (f form) bool(key string) bool { return f[key] == "true" }

// under returns the keys below a prefix, without it.
func (f form) under(prefix string) form {
	below := form{}
	for key, value := range f {
		if rest, ok := strings.CutPrefix(key, prefix+"."); ok {
			below[rest] = value
		}
	}
	return below
}

// each returns the members of a list of structures, in order.
func (f form) each(list string) []form {
	members := map[int]form{}
	for key, value := range f {
		rest, ok := strings.CutPrefix(key, list+".")
		if !ok {
			continue
		}
		index, field, _ := strings.Cut(rest, ".")
		n, err := strconv.Atoi(index)
		if err != nil {
			continue
		}
		if members[n] == nil {
			members[n] = form{}
		}
		members[n][field] = value
	}
	sorted := make([]form, 0, len(members))
	for _, n := range slices.Sorted(maps.Keys(members)) {
		sorted = append(sorted, members[n])
	}
	return sorted
}

// list returns the members of a list of scalars, in order.
func (f form) list(name string) []string {
	var values []string
	for _, member := range f.each(name) {
		values = append(values, member[""])
	}
	return values
}

// tags reads Tag.n.Key and Tag.n.Value.
func (f form) tags() map[string]string {
	tags := map[string]string{}
	for _, tag := range f.each("Tag") {
		tags[tag["Key"]] = tag["Value"]
	}
	return tags
}

// tagsFor merges the tag specifications of one resource type.
func (f form) tagsFor(resourceType string) map[string]string {
	tags := map[string]string{}
	for _, specification := range f.each("TagSpecification") {
		if specification["ResourceType"] == resourceType {
			maps.Copy(tags, specification.tags())
		}
	}
	return tags
}

var indexPattern = regexp.MustCompile(`\.\d+(\.|$)`)

// unknownKeys returns the keys whose shape (list positions written as #) is not in known.
func (f form) unknownKeys(known map[string]bool) []string {
	var unknown []string
	for key := range f {
		shape := key
		for indexPattern.MatchString(shape) {
			shape = indexPattern.ReplaceAllString(shape, ".#$1")
		}
		if !known[shape] {
			unknown = append(unknown, key)
		}
	}
	slices.Sort(unknown)
	return unknown
}

// filter is one Filter.n: any of the values may match, all filters must.
type filter struct {
	name   string
	values []*regexp.Regexp
}

func (f form) filters() []filter {
	var filters []filter
	for _, member := range f.each("Filter") {
		one := filter{name: member["Name"]}
		for _, value := range member.list("Value") {
			one.values = append(one.values, wildcard(value))
		}
		filters = append(filters, one)
	}
	return filters
}

// attributes are an item's values by filter name; tags are asked for apart.
type attributes map[string][]string

// matches applies the filters to one item. A filter that the attributes do not know is an error.
func matches(filters []filter, tags map[string]string, attrs attributes) (bool, error) {
	for _, f := range filters {
		values, known := attrs[f.name]
		if key, isTag := strings.CutPrefix(f.name, "tag:"); isTag {
			value, has := tags[key]
			if !has {
				return false, nil
			}
			values, known = []string{value}, true
		}
		if f.name == "tag-key" {
			values, known = slices.Collect(maps.Keys(tags)), true
		}
		if !known {
			return false, errorf("InvalidParameterValue", "The filter '%s' is invalid", f.name)
		}
		if !slices.ContainsFunc(f.values, func(p *regexp.Regexp) bool { return slices.ContainsFunc(values, p.MatchString) }) {
			return false, nil
		}
	}
	return true, nil
}

// page cuts one page out of items: MaxResults within [least, most], all of them when it is absent
// and cap is 0, else cap. The returned token is empty on the last page.
func page[T any](f form, items []T, least, most, fallback int) ([]T, string, error) {
	offset := 0
	if token := f.get("NextToken"); token != "" {
		decoded, err := base64.RawURLEncoding.DecodeString(token)
		n, atoiErr := strconv.Atoi(string(decoded))
		if err != nil || atoiErr != nil || n < 0 {
			return nil, "", errorf("InvalidNextToken", "The token '%s' is invalid", token)
		}
		offset = min(n, len(items))
	}
	size := fallback
	if text := f.get("MaxResults"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < least {
			return nil, "", errorf("InvalidParameterValue", "Value ( %s ) for parameter maxResults is invalid. Expecting a value of at least %d.", text, least)
		}
		size = min(n, most)
	}
	if size <= 0 || offset+size >= len(items) {
		return items[offset:], "", nil
	}
	return items[offset : offset+size], base64.RawURLEncoding.EncodeToString([]byte(strconv.Itoa(offset + size))), nil
}

// tagItem is a tag in an EC2 reply.
type tagItem struct {
	Key   string `xml:"key"`
	Value string `xml:"value"`
}

func tagItems(tags map[string]string) []tagItem {
	var items []tagItem
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		items = append(items, tagItem{Key: key, Value: tags[key]})
	}
	return items
}

// timestamp formats a time as EC2 does.
func timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
