// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/fakeaws"
)

func TestConcurrentUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(t)
		class := c.ready(t, demoClass())
		c.aws.SetFault(fakeaws.Rule{Action: "CreateFleet", PerPool: true, Zone: "us-east-1a", Probability: 0.5, Code: "InsufficientInstanceCapacity"})
		var work sync.WaitGroup
		for i := range 20 {
			work.Go(func() {
				options := c.options(t, class, onDemand, "m5.large", "c5.large", "m6g.xlarge")
				for j := range 5 {
					if _, err := c.Launch(t.Context(), launchRequest(class, fmt.Sprint(i, "-", j), options)); err != nil {
						t.Error(err)
					}
				}
			})
			work.Go(func() {
				time.Sleep(time.Duration(i) * 10 * time.Second)
				c.ready(t, class)
				if err := c.Sweep(t.Context(), 0); err != nil {
					t.Error(err)
				}
			})
		}
		work.Wait()
		if n := len(c.aws.Instances()); n != 100 {
			t.Errorf("%d instances, want 100", n)
		}
	})
}

func BenchmarkLaunch60Types(b *testing.B) {
	server := fakeaws.New(fakeaws.Options{ClusterName: "demo"})
	defer server.Close()
	p := New(Options{ClusterName: "demo", AWS: server.AWSConfig("AKIATEST")})
	p.catalogue = soldInTheRegion()
	c := &cloud{Provider: p, aws: server}
	class := demoClass()
	if _, err := c.Resolve(b.Context(), class); err != nil {
		b.Fatal(err)
	}
	req := launchRequest(class, "", wideOptions(b, c))
	for i := 0; b.Loop(); i++ {
		req.Token = fmt.Sprint("bench-", i)
		if _, err := c.Launch(b.Context(), req); err != nil {
			b.Fatal(err)
		}
	}
}
