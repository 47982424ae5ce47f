// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"testing"
	"time"
)

func TestResolveIsQuick(t *testing.T) {
	t.Parallel()
	c := newCloud(t)
	c.catalogue = nil
	start := time.Now()
	class := c.ready(t, demoClass())
	t.Logf("first Resolve: %v, %d calls", time.Since(start), len(c.aws.Calls()))
	types, err := c.InstanceTypes(class)
	if err != nil || len(types) < 1000 {
		t.Fatalf("InstanceTypes: %d types, %v", len(types), err)
	}
}
