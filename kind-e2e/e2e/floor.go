// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/judge"
)

// measureFloor has the default scheduler bind copies of the pods, which have that app label, to nodes that are ready and
// have room: nothing can be faster here and now. The copies stay.
func (e *Env) measureFloor(ctx context.Context, app string, pods []*corev1.Pod) (judge.Binding, error) {
	copies := make([]*corev1.Pod, len(pods))
	for i, pod := range pods {
		c := pod.DeepCopy()
		c.Name, c.Labels["app"] = "floor-"+pod.Name, floorApp(app)
		byDefaultScheduler(c)
		if c.Spec.Affinity != nil && c.Spec.Affinity.PodAntiAffinity != nil {
			alone(c) // from each other now
		}
		copies[i] = c
	}
	if err := e.Create(ctx, copies...); err != nil {
		return judge.Binding{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	sel := judge.PodSelector{Namespace: pods[0].Namespace, Labels: map[string]string{"app": floorApp(app)}}
	if err := e.Judge.WaitFor(ctx, func(v *judge.View) bool { return v.Count(sel).Bound == len(copies) }); err != nil {
		return judge.Binding{}, fmt.Errorf("measuring the floor: %w", err)
	}
	return e.Judge.Binding(sel), nil
}

func floorApp(app string) string { return "floor-" + app }
