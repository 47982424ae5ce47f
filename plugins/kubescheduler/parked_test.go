// SPDX-License-Identifier: Apache-2.0

package kubescheduler_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/jit-scheduler/jit-scheduler/plugins/nodeprovisioning"
	"github.com/jit-scheduler/jit-scheduler/provisioner"
	"github.com/jit-scheduler/jit-scheduler/provisioner/simtest"
)

// TestParkedPodChanges: what happens to a pod while it waits is counted on its planned node.
func TestParkedPodChanges(t *testing.T) {
	for name, tt := range map[string]struct {
		change            func(c *simtest.Cluster)
		wantCPUs          int64
		wantPods          int
		wantParked        bool
		wantNode          string // where p1 is after the claim was handed over to ip-1
		wantDeletedBefore bool
	}{
		"resized": {
			change: func(c *simtest.Cluster) {
				c.UpdatePod("p1", func(p *v1.Pod) {
					p.Spec.Containers[0].Resources.Requests[v1.ResourceCPU] = resource.MustParse("3")
				})
			},
			wantCPUs: 4, wantPods: 2, wantParked: true, wantNode: "ip-1",
		},
		"status only": {
			change: func(c *simtest.Cluster) {
				c.UpdatePod("p1", func(p *v1.Pod) { p.Status.NominatedNodeName = "claim-1" })
			},
			wantCPUs: 2, wantPods: 2, wantParked: true, wantNode: "ip-1",
		},
		"deleted": {
			change:   func(c *simtest.Cluster) { c.DeletePod("p1") },
			wantCPUs: 1, wantPods: 1, wantDeletedBefore: true,
		},
		"terminating": {
			change: func(c *simtest.Cluster) {
				c.UpdatePod("p1", func(p *v1.Pod) { now := metav1.Now(); p.DeletionTimestamp = &now })
			},
			wantCPUs: 1, wantPods: 1,
		},
		"bound by somebody else": {
			change: func(c *simtest.Cluster) {
				c.UpdatePod("p1", func(p *v1.Pod) { p.Spec.NodeName = "other" })
			},
			wantCPUs: 1, wantPods: 1, wantNode: "other",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, l := start(t, 1, simtest.Options{})
				c.CreatePod(pod("p1", "1"))
				c.CreatePod(pod("p2", "1"))
				synctest.Wait()
				tt.change(c)
				time.Sleep(time.Minute)
				synctest.Wait()
				if cpus, pods := requested(t, c, "claim-1"); cpus != tt.wantCPUs || pods != tt.wantPods {
					t.Errorf("planned node counts %d CPUs and %d pods, want %d and %d", cpus, pods, tt.wantCPUs, tt.wantPods)
				}
				if got := c.Adapter.Parked("p1") != nil; got != tt.wantParked {
					t.Errorf("parked = %t, want %t", got, tt.wantParked)
				}
				c.CreateNode(held("ip-1"))
				synctest.Wait()
				l.handOver("claim-1", "ip-1")
				synctest.Wait()
				if _, err := c.Scheduler.Cache.GetNode("claim-1"); err == nil {
					t.Error("planned node is still in the cache")
				}
				want := []string{tt.wantNode, "ip-1"}
				names := []string{"p1", "p2"}
				if tt.wantDeletedBefore {
					want, names = want[1:], names[1:]
				}
				if diff := cmp.Diff(want, nodesOf(c, names...)); diff != "" {
					t.Errorf("nodes (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// fickle answers the second question about a pod otherwise than the first.
type fickle struct {
	*ledger
	asked map[types.UID]int
}

func (f *fickle) Reservation(pod *v1.Pod) provisioner.Reservation {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked[pod.UID]++
	if f.asked[pod.UID] == 1 {
		return provisioner.Reservation{NodeClaim: "claim-1"}
	}
	return provisioner.Reservation{}
}

// TestPlaceTakenAwayWhileParking: a claim that is withdrawn while its pod is being parked leaves no pod behind.
func TestPlaceTakenAwayWhileParking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fickle{asked: map[types.UID]int{}}
		c := simtest.Start(t, simtest.Options{Provisioner: func(c *simtest.Cluster) nodeprovisioning.Provisioner {
			f.ledger = &ledger{sched: c.Adapter, reserved: map[types.UID]string{}}
			return f
		}})
		c.CreateNode(machine("ready"))
		synctest.Wait()
		c.CreatePod(pod("p1", "1"))
		synctest.Wait()
		if got := c.Pod("p1").Spec.NodeName; got != "ready" {
			t.Errorf("pod is on %q, want ready", got)
		}
		if c.Adapter.Parked("p1") != nil {
			t.Error("pod is parked")
		}
		if n, err := c.Scheduler.Cache.GetNode("claim-1"); err == nil {
			t.Errorf("cache has the claim's node with %d pods", len(n.Pods))
		}
	})
}

// TestPlannedNodeChangesZone: the launch may end in another zone than planned; nothing may be left behind then.
func TestPlannedNodeChangesZone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := start(t, 0, simtest.Options{})
		planned := machine("claim-1")
		c.Adapter.AddPlannedNode(planned)
		moved := machine("claim-1")
		moved.Labels[v1.LabelTopologyZone] = "b"
		c.Adapter.UpdatePlannedNode(moved)
		n, err := c.Scheduler.Cache.GetNode("claim-1")
		if err != nil {
			t.Fatal(err)
		}
		if zone := n.Node().Labels[v1.LabelTopologyZone]; zone != "b" {
			t.Errorf("zone = %s, want b", zone)
		}
		if _, marked := n.Node().Annotations[nodeprovisioning.PlannedAnnotation]; !marked {
			t.Error("planned node lacks its annotation")
		}
		c.Adapter.RemovePlannedNode("claim-1")
		c.Adapter.RemovePlannedNode("claim-1")
		if c.Scheduler.Cache.NodeCount() != 0 {
			t.Error("the node is still in the cache")
		}
		// A broken node tree would fail every cycle from here on.
		c.CreateNode(machine("ready"))
		c.CreatePod(pod("p1", "1"))
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := c.Pod("p1").Spec.NodeName; got != "ready" {
			t.Errorf("pod is on %q, want ready", got)
		}
	})
}

// TestWithdraw: a claim that is given up sends its pods back to be planned again.
func TestWithdraw(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, l := start(t, 1, simtest.Options{})
		c.CreatePod(pod("p1", "1"))
		synctest.Wait()
		first := c.Adapter.Parked("p1")
		l.withdraw("claim-1")
		time.Sleep(time.Minute)
		synctest.Wait()
		if again := c.Adapter.Parked("p1"); first == nil || again == nil {
			t.Fatalf("parked first %v, again %v", klog.KObj(first), klog.KObj(again))
		}
		if claims, provisions := l.snapshot(); len(claims) != 1 || provisions != 2 {
			t.Errorf("%d claims by %d plans, want 1 by 2", len(claims), provisions)
		}
	})
}
