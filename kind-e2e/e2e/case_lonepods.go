// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/judge"
)

var lonePodsCase = Case{
	Name:  "lone-pods",
	About: "20 pods that each need a machine, one after another: CreateFleet within 100 ms of the pod (median)",
	Run:   runLonePods,
}

const lonePods = 20

func runLonePods(ctx context.Context, t *Trial) error {
	if err := t.Start(ctx); err != nil {
		return err
	}
	if err := t.Buyable(ctx); err != nil {
		return err
	}
	if err := t.waitBuyable(ctx); err != nil {
		return err
	}
	// One more than is measured: the first has no launch template yet, and stands apart.
	pods := t.Series("lone", lonePods+1, "1", alone)
	for i, pod := range pods {
		if err := t.Create(ctx, pod); err != nil {
			return err
		}
		if err := t.Wait(ctx, settleTimeout, func(v *judge.View) string { return fleetsMissing(v, i+1) }); err != nil {
			return err
		}
	}
	if err := t.WaitBound(ctx, "lone", len(pods), time.Minute); err != nil {
		return err
	}
	f := t.Judge.Figures(t.App("lone"))
	floor, err := t.floor(ctx, "lone", pods)
	if err != nil {
		return err
	}
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	goal := func(name string, value, want time.Duration) {
		t.Judge.AddGoal(judge.Goal{Name: name, Value: ms(value), Want: ms(want), Unit: "ms", Floor: ms(floor.Latency.Median)})
	}
	goal("pod → CreateFleet, median", f.FleetAfterPod.Median, 100*time.Millisecond)
	goal("node Ready → bound, max", f.BoundAfterReady.Max, time.Second)
	t.Say("    pod → CreateFleet: first %s, then %s; pod → NodeClaim: %s; pod → nominated: %s", f.FirstFleetAfterPod.Round(time.Millisecond),
		f.FleetAfterPod, f.ClaimAfterPod, f.NominatedAfterPod)
	t.Say("    floor (default-scheduler binds the same pods to ready nodes): %s", floor.Latency)
	if f.FleetAfterPod.Count != lonePods {
		return fmt.Errorf("%d pods were alone on a machine, wanted %d", f.FleetAfterPod.Count, lonePods)
	}
	return nil
}

func fleetsMissing(v *judge.View, want int) string {
	if n := fleetCalls(v); n < want {
		return fmt.Sprintf("%d CreateFleet calls, wanted %d", n, want)
	}
	return ""
}

// waitBuyable waits until the product has resolved the class of the examples: what it takes is not what a pod waits for.
func (t *Trial) waitBuyable(ctx context.Context) error {
	return t.kubectl(ctx, "wait", "--for=condition=Ready", "--timeout=60s", "ec2nodeclass/default", "nodepool/default")
}

// floor deletes the pods and measures the floor on the nodes that they leave.
func (t *Trial) floor(ctx context.Context, app string, pods []*corev1.Pod) (judge.Binding, error) {
	names := make([]string, len(pods))
	for i, pod := range pods {
		names[i] = pod.Name
	}
	if err := t.Delete(ctx, names...); err != nil {
		return judge.Binding{}, err
	}
	if err := t.WaitBound(ctx, app, 0, settleTimeout); err != nil {
		return judge.Binding{}, err
	}
	return t.measureFloor(ctx, app, pods)
}
