// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/jit-scheduler/jit-scheduler/provisioner/plan"
)

// waitingPod is a pod that was refused, and why. While nothing changes that could make the answer another one
// (epoch), the same answer is given again without planning.
type waitingPod struct {
	epoch           uint64
	reason, message string
	// retries counts plans that gave the pod neither a place nor a reason.
	retries int
	// said: it was logged that the pod gets no place.
	said bool
}

// maxRetries is when such a pod stops cycling until something changes: it must not spin.
const maxRetries = 3

// Provision decides for a pod that no ready node can take, and for everything that waits with it. It runs on the
// scheduling thread and does no I/O.
func (p *Provisioner) Provision(pod *v1.Pod, schedulerName string, preempting bool) Decision {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !unbound(p.stored(pod.Namespace, pod.Name, pod.UID)) {
		return Decision{Outcome: Retry} // gone during its cycle: nothing would ever give its place back
	}
	if d, done := p.answered(pod, preempting); done {
		return d
	}
	start := time.Now()
	snap := p.snapshot(pod, schedulerName)
	if len(snap.Pools) == 0 && len(snap.Open) == 0 {
		return p.refuse(pod, p.noPool())
	}
	fitter, err := p.sched.NewFitter(schedulerName)
	if err != nil {
		p.logger().Error(err, "No Filter oracle", "profile", schedulerName)
		return p.refuse(pod, plan.Unplaced{Reason: "InternalError", Message: "cannot ask the filters: " + err.Error()})
	}
	p.placeReserved(snap.Open, fitter)
	result := plan.Plan(snap, &failedClass{Fitter: fitter, pod: pod.UID})
	for i := range result.Unplaced {
		result.Unplaced[i] = p.blameNotReady(result.Unplaced[i])
	}
	p.commit(result, time.Since(start))
	return p.decision(pod, result)
}

// answered gives the answers that need no plan; mu is held.
func (p *Provisioner) answered(pod *v1.Pod, preempting bool) (Decision, bool) {
	switch claim, node := p.state.Reservation(pod.UID); {
	case claim != "":
		return p.nominated(claim), true
	case node != "":
		return Decision{Outcome: Retry}, true
	case preempting:
		return Decision{Outcome: Refused, Reason: "Preempting", Message: "waiting for the victims of its preemption to end"}, true
	}
	if w := p.waiting[pod.UID]; w != nil && w.epoch == p.epoch && w.reason != "" {
		return Decision{Outcome: Refused, Reason: w.reason, Message: w.message}, true
	}
	if err := p.karpenter.blocks(); err != nil {
		return p.refuse(pod, plan.Unplaced{Reason: reasonKarpenter, Message: err.Error()}), true
	}
	if p.ctx == nil || !p.synced {
		return p.refuse(pod, plan.Unplaced{
			Reason: "NotSynced", Message: "no capacity is launched before all NodeClaims are known; is the NodeClaim CRD installed?",
		}), true
	}
	return Decision{}, false
}

// decision is what the plan says of the pod that was asked about; mu is held.
func (p *Provisioner) decision(pod *v1.Pod, result plan.Result) Decision {
	if claim, _ := p.state.Reservation(pod.UID); claim != "" {
		return p.nominated(claim)
	}
	for _, u := range result.Unplaced {
		if slices.ContainsFunc(u.Pods, func(o *v1.Pod) bool { return o.UID == pod.UID }) {
			return p.refuse(pod, u)
		}
	}
	return p.retry(pod)
}

// retry has the pod cycle again at once, a few times.
func (p *Provisioner) retry(pod *v1.Pod) Decision {
	w := p.waiting[pod.UID]
	if w == nil || w.epoch != p.epoch {
		w = &waitingPod{epoch: p.epoch, said: w != nil && w.said}
		p.waiting[pod.UID] = w
	}
	if w.retries++; w.retries > maxRetries {
		if !w.said {
			p.logger().Info("A planned pod got no place; it is planned again when something changes", "pod", klog.KObj(pod))
		}
		d := p.refuse(pod, plan.Unplaced{Reason: "NoPlace", Message: "the place planned for the pod was taken; it is planned again when something changes"})
		p.waiting[pod.UID].said = true
		return d
	}
	return Decision{Outcome: Retry}
}

func (p *Provisioner) refuse(pod *v1.Pod, u plan.Unplaced) Decision {
	p.waiting[pod.UID] = &waitingPod{epoch: p.epoch, reason: u.Reason, message: u.Message}
	return Decision{Outcome: Refused, Reason: u.Reason, Message: u.Message}
}

// nominated describes the claim that a pod is reserved on; mu is held.
func (p *Provisioner) nominated(claim string) Decision {
	d := Decision{Outcome: Nominated, NodeClaim: claim, Reason: "Nominated", Message: "reserved on NodeClaim " + claim}
	if c, ok := p.state.Claim(claim); ok {
		d.Message = p.describe(c)
	}
	d.Launch = func(ctx context.Context) error { return p.awaitLaunch(ctx, claim) }
	return d
}

// launchPoll is how often launchWait looks; the operator asked the scheduling thread to wait.
const launchPoll = 20 * time.Millisecond

// awaitLaunch returns when the claim's launch was answered: nil, or what went wrong.
func (p *Provisioner) awaitLaunch(ctx context.Context, claim string) error {
	for {
		p.mu.Lock()
		c, ok := p.state.Claim(claim)
		why := p.failures[claim]
		p.mu.Unlock()
		switch {
		case why != "":
			return errors.New(why)
		case !ok:
			return fmt.Errorf("NodeClaim %s was given up", claim)
		case c.Launched:
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(launchPoll):
		}
	}
}

// failedClass is the Fitter for a pod that has just failed on every ready node: its like are not offered to them
// again, or the two answers could chase each other.
type failedClass struct {
	plan.Fitter
	pod types.UID
}

// Ready implements plan.Fitter.
func (f *failedClass) Ready(class *plan.Class, limit int) int {
	if slices.ContainsFunc(class.Pods, func(p *v1.Pod) bool { return p.UID == f.pod }) {
		return 0
	}
	return f.Fitter.Ready(class, limit)
}

// wakeWaiting activates refused pods: all of them, or those that were refused before the last change.
func (p *Provisioner) wakeWaiting(all bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if all {
		p.epoch++ // offerings that were out of capacity may be back
	}
	var uids []types.UID
	for uid, w := range p.waiting {
		if w.epoch != p.epoch {
			uids = append(uids, uid)
		}
	}
	if len(uids) > 0 && p.sched != nil {
		slices.Sort(uids)
		p.sched.Activate(uids)
	}
}
