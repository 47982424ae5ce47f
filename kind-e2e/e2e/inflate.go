// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/judge"
)

// Inflate selects the pods of the Deployment of the examples.
var Inflate = judge.PodSelector{Namespace: "default", Labels: map[string]string{"app": "inflate"}}

// Scale sets the Deployment's replicas and waits until that many pods are bound and no other is left.
func (e *Env) Scale(ctx context.Context, replicas int, within time.Duration) error {
	began := time.Now()
	if err := e.kubectl(ctx, "scale", "deployment/inflate", fmt.Sprintf("--replicas=%d", replicas)); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	err := e.Judge.WaitFor(ctx, func(v *judge.View) bool {
		n := v.Count(Inflate)
		return n.Bound == replicas && n.Total == replicas
	})
	v := e.Judge.View()
	if err != nil {
		return fmt.Errorf("scaling inflate to %d: %w", replicas, err)
	}
	done := "all bound"
	if replicas == 0 {
		done = "pods gone"
	}
	e.Say("inflate %3d: %s after %5.1fs; %d machines, $%.4f/h", replicas, done, time.Since(began).Seconds(),
		len(v.LiveInstances()), v.USDPerHour())
	return nil
}

// MachinesGone is true once no machine, Node or NodeClaim is left; launch templates may be.
func MachinesGone(v *judge.View) bool {
	return len(v.LiveInstances()) == 0 && len(v.Claims) == 0 && v.ProvisionedNodes() == 0
}

// WaitGone waits until gone says that what is called what is left no more.
func (e *Env) WaitGone(ctx context.Context, what string, gone func(*judge.View) bool, within time.Duration) error {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if err := e.Judge.WaitFor(ctx, gone); err != nil {
		return fmt.Errorf("waiting until no %s is left: %w", what, err)
	}
	e.Say("no %s is left after %.1fs", what, time.Since(began).Seconds())
	return nil
}

// inflateFloor measures the floor with as many pods as the Deployment had, on the nodes that these have left, and
// removes them.
func (e *Env) inflateFloor(ctx context.Context, replicas int) (judge.Binding, error) {
	var pods []*corev1.Pod
	for i := range replicas {
		pods = append(pods, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("inflate-%d", i), Labels: map[string]string{"app": "inflate"}},
			Spec:       podSpec(productScheduler, "1"),
		})
	}
	floor, err := e.measureFloor(ctx, "inflate", pods)
	if err != nil {
		return floor, err
	}
	e.Say("floor: the default scheduler binds %d such pods to these nodes in %.1fs, each in %s", replicas,
		floor.LastBound.Sub(floor.FirstSeen).Seconds(), floor.Latency)
	return floor, e.kubectl(ctx, "-n", "default", "delete", "pods", "-l", "app="+floorApp("inflate"), "--wait=false")
}
