// SPDX-License-Identifier: Apache-2.0

package simtest

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// TestKillAnywhere kills the product at many moments between the first pod and the last binding, with an EC2 that
// takes its time and shows machines late: the same number of machines, no pod lost, no machine without a NodeClaim.
func TestKillAnywhere(t *testing.T) {
	files, err := readArchive("testdata/inflate.txtar")
	if err != nil {
		t.Fatal(err)
	}
	script := `settings {"describeLag":"3s"}
fault {"action":"CreateFleet","delay":"700ms"}
replicaset web 5 cpu=1
advance %s
restart
within 2m bound web 5
expect launched 1
expect claims 1`
	for _, after := range []time.Duration{
		0, 10 * time.Millisecond, 11 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond, 300 * time.Millisecond, 709 * time.Millisecond,
		711 * time.Millisecond, 720 * time.Millisecond, time.Second, 1900 * time.Millisecond, 2710 * time.Millisecond, 2711 * time.Millisecond, 2800 * time.Millisecond,
	} {
		t.Run(after.String(), func(t *testing.T) {
			commands, err := parse(fmt.Sprintf(script, max(after, time.Nanosecond)))
			if err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) { play(t, files, commands) })
		})
	}
}
