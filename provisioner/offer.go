// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jit-scheduler/jit-scheduler/provisioner/lifecycle"
	"github.com/jit-scheduler/jit-scheduler/provisioner/plan"
)

const (
	// offerDelay gathers what frees up together before parked pods are asked again.
	offerDelay = 100 * time.Millisecond
	// offerShare is how many times as long as the last offer took there is none: it holds the lock that cycles need.
	offerShare = 10
)

// roomFreed says that ready nodes may have room that they did not have; mu is held.
func (p *Provisioner) roomFreed() {
	if p.offering || p.ctx == nil || !p.synced {
		return
	}
	p.offering = true
	time.AfterFunc(max(offerDelay, offerShare*p.offerTook), p.offer)
}

// offer gives room on ready nodes to parked pods, those that wait longest first and no more than fit: waiting for a
// machine is no prison. They go back into the queue without their place; an ordinary cycle binds them.
func (p *Provisioner) offer() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.offering = false
	if p.ctx == nil || p.ctx.Err() != nil || p.state.Waiting() == 0 {
		return
	}
	start := time.Now()
	defer func() { p.offerTook = time.Since(start) }()
	byProfile := map[string][]*v1.Pod{}
	for _, uid := range p.state.Parked() {
		if parked := p.sched.Parked(uid); parked != nil {
			pod := *parked
			pod.Spec.NodeName = "" // the planned node's: filters would insist on it
			byProfile[pod.Spec.SchedulerName] = append(byProfile[pod.Spec.SchedulerName], &pod)
		}
	}
	for profile, pods := range byProfile {
		fitter, err := p.sched.NewFitter(profile)
		if err != nil {
			p.logger().Error(err, "No Filter oracle", "profile", profile)
			continue
		}
		var leave []types.UID
		for _, class := range plan.Classes(pods) {
			for _, pod := range class.Pods[:fitter.Ready(&class, len(class.Pods))] {
				leave = append(leave, pod.UID)
			}
		}
		if len(leave) > 0 {
			p.logger().Info("Ready nodes have room for reserved pods", "pods", len(leave))
			p.applyLocked(lifecycle.PodsOffered{Pods: leave})
		}
	}
}
