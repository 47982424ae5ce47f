// SPDX-License-Identifier: Apache-2.0

package fakeaws

import "slices"

// facts are what a request can select an item by.
type facts struct {
	names []string // ids and names by which it may be listed
	tags  map[string]string
	attrs attributes
}

// choose returns the items that the request lists (all if it lists none) and whose facts pass its filters.
func choose[T any](f form, listed []string, items []T, of func(T) facts) ([]T, error) {
	filters := f.filters()
	var chosen []T
	for _, item := range items {
		known := of(item)
		ok, err := matches(filters, known.tags, known.attrs)
		if err != nil {
			return nil, err
		}
		asked := len(listed) == 0 || slices.ContainsFunc(listed, func(name string) bool { return slices.Contains(known.names, name) })
		if ok && asked {
			chosen = append(chosen, item)
		}
	}
	return chosen, nil
}

// converted makes the items of a reply.
func converted[T, U any](items []T, convert func(T) U) []U {
	out := make([]U, 0, len(items))
	for _, item := range items {
		out = append(out, convert(item))
	}
	return out
}
