// SPDX-License-Identifier: Apache-2.0

package simtest

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
)

// pinned are 100 pods that may only run in one zone.
const pinned = "-- pinned --\nspec: {nodeSelector: {topology.kubernetes.io/zone: us-east-1a}}\n"

// TestFirstRequestOutOfCapacity plays a launch twice: once to see which instance types the first CreateFleet asks for,
// and once with all of them out of capacity in the zone that the pods are pinned to. All pods are bound in that zone, on
// the NodeClaims that were opened first.
func TestFirstRequestOutOfCapacity(t *testing.T) {
	for name, pods := range map[string]string{"many small pods": "replicaset web 100 from=pinned cpu=500m", "many pods of a CPU": "replicaset web 100 from=pinned cpu=1"} {
		t.Run(name, func(t *testing.T) {
			var types []string
			synctest.Test(t, func(t *testing.T) {
				playScript(t, pinned, pods+"\nwithin 1m bound web 100", func(w *world) { types = w.firstRequest() })
			})
			if len(types) == 0 {
				t.Fatal("no CreateFleet was made")
			}
			var script strings.Builder
			for _, name := range types {
				fmt.Fprintf(&script, `fault {"action":"CreateFleet","instanceType":%q,"zone":"us-east-1a","perPool":true,"code":"InsufficientInstanceCapacity"}`+"\n", name)
			}
			script.WriteString(pods + "\nwithin 2s counted web 100\nremember\nwithin 2m bound web 100\nexpect same-claims\nexpect zones web us-east-1a=100\nexpect event web-1 Nominated \"\"")
			t.Logf("%d types are out", len(types))
			synctest.Test(t, func(t *testing.T) { playScript(t, pinned, script.String(), nil) })
		})
	}
}

// playScript plays a script that is made while the test runs.
func playScript(t *testing.T, sections, script string, then func(*world)) {
	archive, err := readScript(sections)
	if err != nil {
		t.Fatal(err)
	}
	commands, err := parse(script)
	if err != nil {
		t.Fatal(err)
	}
	w := play(t, archive, commands)
	if then != nil {
		then(w)
	}
}

// firstRequest are the instance types of all CreateFleet calls for the first token.
func (w *world) firstRequest() []string {
	var types []string
	for _, c := range w.aws.Calls() {
		if c.Action != "CreateFleet" || c.DryRun {
			continue
		}
		seen := map[string]bool{}
		for key, value := range c.Params {
			if strings.HasSuffix(key, ".InstanceType") && !seen[value] {
				seen[value] = true
				types = append(types, value)
			}
		}
		break
	}
	return types
}
