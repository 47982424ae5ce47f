// SPDX-License-Identifier: Apache-2.0

package kubescheduler_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/kubernetes/pkg/scheduler/metrics"

	"github.com/jit-scheduler/jit-scheduler/provisioner/simtest"
)

// requested is what the scheduler's cache counts on a node, in CPUs, and how many pods.
func requested(t *testing.T, c *simtest.Cluster, node string) (cpus int64, pods int) {
	t.Helper()
	n, err := c.Scheduler.Cache.GetNode(node)
	if err != nil {
		return -1, -1
	}
	return n.Requested.MilliCPU / 1000, len(n.Pods)
}

func afterFlush(t *testing.T) float64 {
	t.Helper()
	v, err := testutil.GetCounterMetricValue(metrics.PodScheduledAfterFlush)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestParkAndHandOver: from no node at all, three pods are planned by one cycle, counted on the planned node, not
// bound for as long as it takes, and bound by ordinary cycles once the machine is there.
func TestParkAndHandOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		names := []string{"p1", "p2", "p3"}
		c, l := start(t, 10, simtest.Options{Objects: []runtime.Object{pod("p1", "1"), pod("p2", "1"), pod("p3", "1")}})
		flushed := afterFlush(t)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		claims, provisions := l.snapshot()
		if diff := cmp.Diff([]string{"claim-1"}, claims); diff != "" {
			t.Fatalf("claims (-want +got):\n%s", diff)
		}
		if provisions != 1 {
			t.Errorf("Provision was asked %d times, want once for all pods", provisions)
		}
		if cpus, pods := requested(t, c, "claim-1"); cpus != 3 || pods != 3 {
			t.Errorf("planned node counts %d CPUs and %d pods, want 3 and 3", cpus, pods)
		}
		if diff := cmp.Diff([]string{"", "", ""}, nodesOf(c, names...)); diff != "" {
			t.Errorf("bound before the machine is there (-want +got):\n%s", diff)
		}

		c.CreateNode(held("ip-1"))
		synctest.Wait()
		l.handOver("claim-1", "ip-1")
		synctest.Wait()
		if diff := cmp.Diff([]string{"ip-1", "ip-1", "ip-1"}, nodesOf(c, names...)); diff != "" {
			t.Errorf("nodes (-want +got):\n%s", diff)
		}
		if _, err := c.Scheduler.Cache.GetNode("claim-1"); err == nil {
			t.Error("planned node is still in the cache")
		}
		if got := afterFlush(t); got != flushed {
			t.Errorf("%v pods were scheduled after a flush, want none", got-flushed)
		}
		if l.led != 1 {
			t.Errorf("Lead was called %d times, want once", l.led)
		}
	})
}

// TestWakeUps: events of all kinds, and the five-minute flush, move no parked pod and open no second claim.
func TestWakeUps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, l := start(t, 10, simtest.Options{})
		for i := range 4 {
			c.CreatePod(pod(fmt.Sprintf("p%d", i), "1"))
		}
		c.CreateNode(held("other"))
		for i := range 100 {
			c.UpdateNode("other", func(n *v1.Node) { n.Labels["tick"] = fmt.Sprint(i) })
			name := fmt.Sprintf("passing-%d", i)
			passing := pod(name, "1")
			passing.Spec.SchedulerName = "default-scheduler"
			c.CreatePod(passing)
			time.Sleep(10 * time.Second)
			c.DeletePod(name)
		}
		synctest.Wait()
		claims, provisions := l.snapshot()
		if diff := cmp.Diff([]string{"claim-1"}, claims); diff != "" {
			t.Errorf("claims (-want +got):\n%s", diff)
		}
		if provisions > 4 {
			t.Errorf("Provision was asked %d times, want at most once per pod", provisions)
		}
		if cpus, pods := requested(t, c, "claim-1"); cpus != 4 || pods != 4 {
			t.Errorf("planned node counts %d CPUs and %d pods, want 4 and 4", cpus, pods)
		}
	})
}
