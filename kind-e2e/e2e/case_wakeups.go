// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/judge"
)

var wakeUpsCase = Case{
	Name:  "wake-ups",
	About: "100 changes of nodes and other pods while CreateFleet takes 30 s: no further NodeClaim, no further instance",
	Run:   runWakeUps,
}

func runWakeUps(ctx context.Context, t *Trial) error {
	if err := t.Start(ctx); err != nil {
		return err
	}
	if err := t.Buyable(ctx); err != nil {
		return err
	}
	if err := t.AddNode(ctx, "small", "1"); err != nil {
		return err
	}
	if _, err := t.Fake.Fault(ctx, map[string]any{"action": "CreateFleet", "delay": "30s"}); err != nil {
		return err
	}
	if err := t.Create(ctx, t.Series("sleepy", 6, "2", alone)...); err != nil {
		return err
	}
	err := t.Wait(ctx, settleTimeout, func(v *judge.View) string {
		if n := v.Count(t.App("sleepy")); n.Nominated != 6 || len(v.Claims) != 6 {
			return fmt.Sprintf("%d pods are nominated on %d NodeClaims, wanted 6 on 6", n.Nominated, len(v.Claims))
		}
		return ""
	})
	if err != nil {
		return err
	}
	before := claimUIDs(t.Judge.View())
	if err := t.wakeUp(ctx, 100, 200*time.Millisecond); err != nil {
		return err
	}
	if err := t.WaitBound(ctx, "sleepy", 6, time.Minute); err != nil {
		return err
	}
	return sameClaims(t.Judge.View(), before)
}

// wakeUp changes the cluster n times in ways that make a scheduler look at its pods again, one every so often.
func (t *Trial) wakeUp(ctx context.Context, n int, every time.Duration) error {
	for i := range n {
		next := time.Now().Add(every)
		if i%2 == 0 {
			patch := fmt.Appendf(nil, `{"metadata":{"labels":{"turn":"%d"}}}`, i)
			if _, err := t.Kube.CoreV1().Nodes().Patch(ctx, "small", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
				return err
			}
		} else {
			// It takes room and gives it back.
			pod := t.Pod("unrelated", fmt.Sprintf("unrelated-%d", i), "100m", onNode("small"))
			if i%4 == 1 {
				byDefaultScheduler(pod)
			}
			if err := t.Create(ctx, pod); err != nil {
				return err
			}
			err := t.Wait(ctx, settleTimeout, func(v *judge.View) string { return unbound(v, t.App("unrelated")) })
			if err != nil {
				return err
			}
			if err := t.Delete(ctx, pod.Name); err != nil {
				return err
			}
		}
		time.Sleep(time.Until(next))
	}
	return nil
}

// unbound names a pod that is not bound.
func unbound(v *judge.View, sel judge.PodSelector) string {
	for _, pod := range v.Select(sel) {
		if pod.Spec.NodeName == "" {
			return fmt.Sprintf("pod %s is not bound: %s", pod.Name, whyPending(pod))
		}
	}
	return ""
}

func whyPending(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled {
			return c.Message
		}
	}
	return "nobody has looked at it"
}

// sameClaims wants the NodeClaims that there were, each with one instance, and no other.
func sameClaims(v *judge.View, before []string) error {
	after := claimUIDs(v)
	if fmt.Sprint(after) != fmt.Sprint(before) {
		return fmt.Errorf("the NodeClaims are %v, they were %v", after, before)
	}
	if len(v.Instances) != len(before) {
		return fmt.Errorf("%d instances were launched, wanted %d", len(v.Instances), len(before))
	}
	return nil
}
