// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/judge"
)

var thousandCase = Case{
	Name:  "thousand",
	About: "inflate at 1,000 without limits: all bound",
	Run: func(ctx context.Context, t *Trial) error {
		if err := t.startInflate(ctx, change{"spec.limits", nil}); err != nil {
			return err
		}
		if err := t.Scale(ctx, 1000, 4*time.Minute); err != nil {
			return err
		}
		f := t.Judge.Figures(Inflate)
		t.Say("    $%.4f/h for 1,000 CPUs; pod → bound %s; node Ready → bound %s", f.USDPerHourAtEnd, f.BoundAfterPod, f.BoundAfterReady)
		return nil
	},
}

var thousandLimitedCase = Case{
	Name:  "thousand-limited",
	About: "inflate at 1,000 with limits of 1,000 CPUs: never above, and the other pods' event says which limit and how much is in use",
	Rules: judge.Rules{Limits: map[string]float64{"default": 1000}},
	Run: func(ctx context.Context, t *Trial) error {
		if err := t.startInflate(ctx); err != nil {
			return err
		}
		if err := t.kubectl(ctx, "scale", "deployment/inflate", "--replicas=1000"); err != nil {
			return err
		}
		if err := t.Wait(ctx, 4*time.Minute, unsettled); err != nil {
			return err
		}
		f := t.Judge.Figures(Inflate)
		t.Say("    %d of 1,000 pods are bound, %.0f vCPU at most", f.Binding.Bound, f.PeakVCPUs)
		return nil
	},
}

// startInflate starts the product and the examples, whose machines stay.
func (t *Trial) startInflate(ctx context.Context, changes ...change) error {
	if err := t.Start(ctx); err != nil {
		return err
	}
	if err := t.Apply(ctx, "manifests/examples"); err != nil {
		return err
	}
	if err := t.kubectl(ctx, "delete", "nodepool/default", "--wait=true"); err != nil {
		return err
	}
	if err := t.NodePool(ctx, "default", changes...); err != nil {
		return err
	}
	return t.waitBuyable(ctx)
}

// unsettled says what is still to come of 1,000 pods that the limit does not allow: each is bound, or refused by it.
func unsettled(v *judge.View) string {
	pods := v.Select(Inflate)
	if len(pods) != 1000 {
		return fmt.Sprintf("%d pods, wanted 1000", len(pods))
	}
	var refused, coming []*corev1.Pod
	for _, pod := range pods {
		switch {
		case pod.Spec.NodeName != "":
		case v.HasEvent("Pod", pod.Namespace, pod.Name, "NodePoolLimitReached", "limit of 1000 cpu", "in use"):
			refused = append(refused, pod)
		default:
			coming = append(coming, pod)
		}
	}
	switch {
	case len(coming) > 0:
		return fmt.Sprintf("%d pods are neither bound nor refused by the limit (%d are refused); %s has events %q", len(coming), len(refused),
			coming[0].Name, v.Events("Pod", coming[0].Namespace, coming[0].Name))
	case len(refused) == 0:
		return "all 1000 pods are bound, which 1000 vCPUs cannot hold"
	}
	return ""
}
