// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"
)

// What EC2 refuses to one pool is remembered for its instance types: rows that share them would hinder each other.
func TestFaultRowsAreApart(t *testing.T) {
	t.Parallel()
	names, types := map[string]bool{}, map[string]string{}
	for i := range faultRows {
		row := &faultRows[i]
		for other := range names {
			if row.name == other || strings.HasPrefix(row.name, other+"-") || strings.HasPrefix(other, row.name+"-") {
				t.Errorf("events about %s would be taken for those about %s", row.name, other)
			}
		}
		names[row.name] = true
		for _, name := range row.types {
			if types[name] != "" {
				t.Errorf("%s and %s both buy %s", row.name, types[name], name)
			}
			types[name] = row.name
		}
		if (row.fix == nil) != (row.fixed == "") || row.fault == "" || len(row.rule) == 0 {
			t.Errorf("row %s is incomplete", row.name)
		}
		if row.phase < allPhases || row.phase >= faultPhases {
			t.Errorf("row %s never runs", row.name)
		}
		for _, tag := range []string{"tags", "params"} {
			if row.rule[tag] != nil && row.class == nil {
				t.Errorf("the fault of row %s is not about its own class", row.name)
			}
		}
	}
}
