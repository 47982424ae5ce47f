// SPDX-License-Identifier: Apache-2.0

package kubescheduler_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/jit-scheduler/jit-scheduler/plugins/nodeprovisioning"
	"github.com/jit-scheduler/jit-scheduler/provisioner"
	"github.com/jit-scheduler/jit-scheduler/provisioner/simtest"
)

// eventReasons are type, reason of a pod's events, in the order of their first appearance.
func eventReasons(c *simtest.Cluster, pod string) []string {
	var out []string
	for _, e := range c.Events(pod) {
		if s := e.Type + " " + e.Reason; !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	slices.Sort(out)
	return out
}

func note(c *simtest.Cluster, pod, reason string) string {
	for _, e := range c.Events(pod) {
		if e.Reason == reason {
			return e.Note
		}
	}
	return ""
}

// TestPlannedNodeIsCountedNeverChosen: a pod that keeps away from a parked one gets a machine of its own, and no pod
// is bound to a planned name however much room it has.
func TestPlannedNodeIsCountedNeverChosen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, l := start(t, 10, simtest.Options{Objects: []runtime.Object{held("other")}})
		for i := range 3 {
			p := pod(fmt.Sprintf("apart-%d", i), "1")
			p.Labels["app"] = "apart"
			p.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{{
				TopologyKey: v1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "apart"}},
			}}}}
			c.CreatePod(p)
			time.Sleep(time.Second)
		}
		c.CreatePod(pod("fits", "1"))
		time.Sleep(time.Minute)
		synctest.Wait()
		if claims, _ := l.snapshot(); len(claims) != 3 {
			t.Errorf("claims = %v, want one per pod that keeps apart and none for the one that fits", claims)
		}
		names := []string{"apart-0", "apart-1", "apart-2", "fits"}
		if diff := cmp.Diff(make([]string, 4), nodesOf(c, names...)); diff != "" {
			t.Errorf("bound (-want +got):\n%s", diff)
		}
		for _, n := range names {
			if c.Pod(n).Status.NominatedNodeName != "" {
				t.Errorf("%s was nominated by the scheduler", n)
			}
		}
		if diff := cmp.Diff([]string{"Normal Nominated", "Warning FailedScheduling"}, eventReasons(c, "apart-0")); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		if msg := note(c, "apart-0", "FailedScheduling"); !strings.Contains(msg, "reserved on NodeClaim claim-1") {
			t.Errorf("FailedScheduling says %q", msg)
		}
	})
}

// TestHold: the held node takes the pods it is held for and nobody else, ready room takes anybody.
func TestHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, l := start(t, 1, simtest.Options{})
		c.CreatePod(pod("mine", "1"))
		synctest.Wait()
		c.CreateNode(held("ip-1"))
		tolerant := pod("tolerant", "1")
		tolerant.Spec.Tolerations = []v1.Toleration{{Operator: v1.TolerationOpExists}}
		tolerant.Spec.Containers[0].Resources.Requests[v1.ResourceCPU] = resource.MustParse("4")
		c.CreatePod(tolerant)
		time.Sleep(time.Minute)
		synctest.Wait()
		l.handOver("claim-1", "ip-1")
		time.Sleep(time.Minute)
		synctest.Wait()
		if diff := cmp.Diff([]string{"ip-1", ""}, nodesOf(c, "mine", "tolerant")); diff != "" {
			t.Errorf("held (-want +got):\n%s", diff)
		}
		c.CreateNode(machine("ready"))
		time.Sleep(time.Minute)
		synctest.Wait()
		if diff := cmp.Diff([]string{"ip-1", "ready"}, nodesOf(c, "mine", "tolerant")); diff != "" {
			t.Errorf("with a ready node (-want +got):\n%s", diff)
		}
	})
}

// TestMisfit: a paired pod that its machine does not take is planned again; nobody is evicted for it meanwhile.
func TestMisfit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, l := start(t, 2, simtest.Options{})
		big := pod("big", "4")
		big.Spec.Priority = new(int32)
		*big.Spec.Priority = 100
		c.CreatePod(big)
		synctest.Wait()
		small := held("ip-1")
		small.Status.Allocatable = v1.ResourceList{v1.ResourceCPU: resource.MustParse("3900m"), v1.ResourceMemory: resource.MustParse("16Gi"), v1.ResourcePods: resource.MustParse("10")}
		c.CreateNode(small)
		victim := pod("victim", "1")
		victim.Spec.NodeName = "ip-1"
		c.CreatePod(victim)
		synctest.Wait()
		l.handOver("claim-1", "ip-1")
		time.Sleep(time.Minute)
		synctest.Wait()
		if l.misfits != 1 {
			t.Errorf("%d misfits, want 1", l.misfits)
		}
		if p := c.Adapter.Parked("big"); p == nil || p.Spec.NodeName != "claim-2" {
			t.Errorf("pod is not parked on a second claim")
		}
		c.Pod("victim")
	})
}

// TestPreemptionGetsItsTurn: what cannot be bought may preempt, and while victims terminate nothing is bought.
func TestPreemptionGetsItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, l := start(t, 0, simtest.Options{Objects: []runtime.Object{machine("ready")}})
		pods := v1.SchemeGroupVersion.WithResource("pods")
		c.Client.PrependReactor("delete", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
			obj, err := c.Client.Tracker().Get(pods, "default", a.(clienttesting.DeleteAction).GetName())
			if err != nil {
				return true, nil, err
			}
			p := obj.(*v1.Pod).DeepCopy()
			now := metav1.Now()
			p.DeletionTimestamp = &now
			return true, nil, c.Client.Tracker().Update(pods, p, "default")
		})
		c.CreatePod(pod("low", "4"))
		synctest.Wait()
		l.mu.Lock()
		l.limit = 10
		l.mu.Unlock()
		urgent := pod("urgent", "4")
		urgent.Labels["app"] = "urgent"
		urgent.Spec.Priority = new(int32)
		*urgent.Spec.Priority = 100
		// Too picky for any machine that can be bought.
		urgent.Spec.NodeSelector = map[string]string{v1.LabelHostname: "ready"}
		c.CreatePod(urgent)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if got := c.Pod("urgent").Status.NominatedNodeName; got != "ready" {
			t.Fatalf("nominated on %q, want ready", got)
		}
		if c.Pod("low").DeletionTimestamp == nil {
			t.Fatal("nobody was preempted")
		}
		// Any wake-up while the victim is there.
		c.UpdateNode("ready", func(n *v1.Node) { n.Labels["a"] = "b" })
		c.UpdatePod("urgent", func(p *v1.Pod) { p.Labels["a"] = "b" })
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if claims, _ := l.snapshot(); len(claims) != 0 {
			t.Errorf("claims = %v, want none", claims)
		}
		if len(l.preempting) == 0 {
			t.Error("the provisioner was never told of the preemption in flight")
		}
		if err := c.Client.Tracker().Delete(pods, "default", "low"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := c.Pod("urgent").Spec.NodeName; got != "ready" {
			t.Errorf("pod is on %q, want ready", got)
		}
	})
}

// TestNotNodeRelated: a pod that PreFilter refuses, with and without nodes, launches nothing and says why.
func TestNotNodeRelated(t *testing.T) {
	for name, objects := range map[string][]runtime.Object{"no node": nil, "a node": {machine("ready")}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, l := start(t, 10, simtest.Options{Objects: objects})
				p := pod("p", "1")
				p.Spec.Volumes = []v1.Volume{{Name: "v", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "missing"}}}}
				c.CreatePod(p)
				pinned := pod("pinned", "1")
				pinned.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
					MatchFields: []v1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: v1.NodeSelectorOpIn, Values: []string{"gone"}}},
				}}}}}
				c.CreatePod(pinned)
				time.Sleep(6 * time.Minute)
				synctest.Wait()
				if claims, _ := l.snapshot(); len(claims) != 0 {
					t.Errorf("claims = %v, want none", claims)
				}
				for pod, want := range map[string]string{"p": `persistentvolumeclaim "missing" not found`, "pinned": ""} {
					if msg := note(c, pod, "NotNodeRelated") + note(c, pod, "NoInstanceTypeFits"); msg == "" || !strings.Contains(msg, want) {
						t.Errorf("event of %s says %q, want %q", pod, msg, want)
					}
				}
			})
		})
	}
}

// TestLaunchWait: with launchWait the launch's error is in the same event; without, the cycle does not wait.
func TestLaunchWait(t *testing.T) {
	for name, tt := range map[string]struct {
		wait      string
		wantWaits time.Duration
		want      string
	}{
		"0s": {wait: "0s"},
		"2s": {wait: "2s", wantWaits: time.Second, want: "no capacity anywhere"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				config := fmt.Sprintf(profile, fmt.Sprintf("  pluginConfig:\n  - name: NodeProvisioning\n    args: {launchWait: %s}\n", tt.wait))
				var took time.Duration
				o := simtest.Options{Config: config, Objects: []runtime.Object{held("other")}}
				c, l := start(t, 1, o)
				l.mu.Lock()
				l.launch = func(ctx context.Context) error {
					begun := time.Now()
					select {
					case <-time.After(time.Second):
						took = time.Since(begun)
						return errors.New("no capacity anywhere")
					case <-ctx.Done():
						return ctx.Err()
					}
				}
				l.mu.Unlock()
				c.CreatePod(pod("p", "1"))
				time.Sleep(5 * time.Second)
				synctest.Wait()
				if took != tt.wantWaits {
					t.Errorf("the cycle waited %s, want %s", took, tt.wantWaits)
				}
				if msg := note(c, "p", "FailedScheduling"); tt.want != "" && !strings.Contains(msg, tt.want) {
					t.Errorf("FailedScheduling says %q, want %q in it", msg, tt.want)
				}
				if c.Adapter.Parked("p") == nil {
					t.Error("pod is not parked")
				}
			})
		})
	}
}

// TestClosed: a node that is about to be removed takes nobody.
func TestClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, l := start(t, 1, simtest.Options{Objects: []runtime.Object{machine("leaving")}})
		l.mu.Lock()
		l.gates = map[string]provisioner.Gate{"leaving": provisioner.Closed}
		l.mu.Unlock()
		c.CreatePod(pod("p", "1"))
		time.Sleep(time.Minute)
		synctest.Wait()
		if c.Adapter.Parked("p") == nil {
			t.Errorf("pod is on %q, want it parked", c.Pod("p").Spec.NodeName)
		}
		if msg := note(c, "p", "FailedScheduling"); !strings.Contains(msg, nodeprovisioning.ReasonClosed) {
			t.Errorf("FailedScheduling says %q", msg)
		}
	})
}
