// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"fmt"
	"maps"
	"slices"
)

// Short says which of minValues (by label, how many values at least) the options do not meet; "" if they meet all.
func Short(options []LaunchOption, minValues map[string]int) string {
	for _, key := range slices.Sorted(maps.Keys(minValues)) {
		values := map[string]bool{}
		for i := range options {
			if v, ok := options[i].label(key); ok {
				values[v] = true
			}
		}
		if len(values) < minValues[key] {
			return fmt.Sprintf("%s has %d values of %d", key, len(values), minValues[key])
		}
	}
	return ""
}

func (o *LaunchOption) label(key string) (string, bool) {
	if v, ok := o.Offering.Labels()[key]; ok {
		return v, true
	}
	v, ok := o.InstanceType.Labels[key]
	return v, ok
}
