// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	_ "embed"
	"strconv"
	"strings"
	"sync"
)

// limitsTable holds facts that no API tells: the network bandwidth as Karpenter labels it, and the branch interfaces for
// pods with security groups; 0 for the types that Karpenter does not offer to such pods, though some have them.
//
// Type names and family names of AWS are in tables like this one, never in code: what holds for a type must follow from
// what EC2 says of it.
//
//go:embed limits.tsv
var limitsTable string

type typeLimits struct {
	listed      bool // false: a type younger than the table, of which it says nothing
	networkMbps int64
	branchENIs  int64
}

// limits are by instance type; a line that does not parse is left out.
var limits = sync.OnceValue(func() map[string]typeLimits {
	table := map[string]typeLimits{}
	for line := range strings.Lines(limitsTable) {
		fields := strings.Split(strings.TrimSpace(line), "\t")
		if len(fields) != 3 || strings.HasPrefix(line, "#") {
			continue
		}
		network, err1 := strconv.ParseInt(fields[1], 10, 64)
		branch, err2 := strconv.ParseInt(fields[2], 10, 64)
		if err1 == nil && err2 == nil {
			table[fields[0]] = typeLimits{listed: true, networkMbps: network, branchENIs: branch}
		}
	}
	return table
})

// unbootableTable lists where the images of a family do not boot: the CPU lacks what they need, which EC2 does not say.
//
//go:embed unbootable.tsv
var unbootableTable string

type bootPair struct{ images, types string }

var unbootable = sync.OnceValue(func() map[bootPair]bool {
	table := map[bootPair]bool{}
	for line := range strings.Lines(unbootableTable) {
		if images, types, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok && !strings.HasPrefix(line, "#") {
			table[bootPair{images, types}] = true
		}
	}
	return table
})
