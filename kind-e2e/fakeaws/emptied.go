// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"maps"
	"reflect"
)

// emptied is a copy of a reply whose lists are empty and that has no further page.
func emptied(body any) any {
	if fields, ok := body.(map[string]any); ok {
		fields = maps.Clone(fields)
		delete(fields, "NextToken")
		for key, value := range fields {
			if reflect.ValueOf(value).Kind() == reflect.Slice {
				fields[key] = []any{}
			}
		}
		return fields
	}
	if body == nil || reflect.TypeOf(body).Kind() != reflect.Struct {
		return body
	}
	reply := reflect.New(reflect.TypeOf(body)).Elem()
	reply.Set(reflect.ValueOf(body))
	for i := range reply.NumField() {
		field := reply.Field(i)
		if name := reply.Type().Field(i).Name; field.Kind() == reflect.Slice || name == "NextToken" || name == "Marker" {
			field.SetZero()
		}
	}
	return reply.Interface()
}
