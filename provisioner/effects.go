// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/jit-scheduler/jit-scheduler/provisioner/lifecycle"
)

// carryOut does what the state machine asks: what concerns the scheduler at once and in order, the rest beside it.
// mu is held.
func (p *Provisioner) carryOut(actions []lifecycle.Action) {
	for _, action := range actions {
		switch a := action.(type) {
		case lifecycle.AddPlannedNode:
			p.sched.AddPlannedNode(a.Node)
		case lifecycle.UpdatePlannedNode:
			p.sched.UpdatePlannedNode(a.Node)
		case lifecycle.RemovePlannedNode:
			p.sched.RemovePlannedNode(a.Name)
		case lifecycle.Requeue:
			p.requeue(a)
		case lifecycle.Activate:
			p.activate(known(a.Pods))
		case lifecycle.Publish:
			p.publish(a)
		case lifecycle.PoolOpen:
			p.changedLocked()
		default:
			p.logAction(action)
			go p.perform(p.ctx, action)
		}
	}
}

// activate wakes pods for whom something has changed: what they were told before no longer stands. mu is held.
func (p *Provisioner) activate(pods []types.UID) {
	for _, uid := range pods {
		if w := p.waiting[uid]; w != nil && w.reason != "" { // retries go on counting
			delete(p.waiting, uid)
		}
	}
	p.sched.Activate(pods)
}

// requeue sends parked pods back into the queue, paired with their node or to be planned again.
func (p *Provisioner) requeue(a lifecycle.Requeue) {
	if a.Node == "" {
		p.logger().Info("Reserved pods are planned again", "nodeClaim", a.Claim, "pods", len(a.Pods), "reason", a.Reason)
		if c, ok := p.state.Claim(a.Claim); !ok || c.Ending {
			p.failures[a.Claim] = a.Reason
		}
		for _, uid := range a.Pods {
			if pod := p.sched.Parked(uid); pod != nil {
				p.hints.clear(ledgerPod(pod))
			}
			delete(p.waiting, uid)
			p.unexpect(uid)
		}
		p.changedLocked()
	} else {
		p.logger().Info("Node handed over", "nodeClaim", a.Claim, "node", a.Node, "pods", len(a.Pods))
	}
	p.sched.Unpark(known(a.Pods))
}

// logAction writes the decisions that people look for; the rest is visible in the objects.
func (p *Provisioner) logAction(action lifecycle.Action) {
	switch a := action.(type) {
	case lifecycle.DeleteClaim:
		p.logger().Info("NodeClaim deleted", "nodeClaim", a.Name, "reason", a.Reason, "message", a.Message)
	case lifecycle.Terminate:
		p.logger().Info("Instance terminated", "nodeClaim", a.Claim, "providerID", a.ProviderID)
	case lifecycle.TaintNode:
		p.logger().Info("Node tainted for removal", "node", a.Node, "taint", a.Taint)
	}
}

// perform carries out one action under the leader's context and reports what came of it.
func (p *Provisioner) perform(ctx context.Context, action lifecycle.Action) {
	evs, err := p.inTime(ctx, action)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		klog.FromContext(ctx).V(2).Info("Action failed, will be repeated", "action", action.Key(), "err", err)
		evs = append(evs, lifecycle.Failed{Key: action.Key(), Message: err.Error(), Gone: apierrors.IsNotFound(err)})
	} else if evs == nil {
		evs = []lifecycle.Event{lifecycle.Done{Key: action.Key()}}
	}
	p.apply(evs...)
}

// inTime waits for a free slot and acts, all within the action's deadline: past it the state machine issues the action
// again, and the two must not fly together.
func (p *Provisioner) inTime(ctx context.Context, action lifecycle.Action) ([]lifecycle.Event, error) {
	ctx, cancel := context.WithTimeout(ctx, effectTimeout(action))
	defer cancel()
	leave, err := p.slots.enter(ctx, action)
	if err != nil {
		return nil, err
	}
	defer leave()
	return p.effect(ctx, action)
}

// errUnknownAction is a fault of ours; a test makes sure that every action is handled.
var errUnknownAction = errors.New("unknown action")

// effect dispatches; nil events and nil error mean Done.
func (p *Provisioner) effect(ctx context.Context, action lifecycle.Action) ([]lifecycle.Event, error) {
	switch a := action.(type) {
	case lifecycle.CreateClaim:
		return p.createClaim(ctx, a)
	case lifecycle.Launch:
		return p.launch(ctx, a)
	case lifecycle.FindInstances:
		return p.findInstances(ctx, a)
	case lifecycle.TagInstance:
		return nil, p.tag(ctx, a)
	case lifecycle.PatchClaim:
		return p.patchClaim(ctx, a)
	case lifecycle.RegisterNode:
		return nil, p.registerNode(ctx, a)
	case lifecycle.InitializeNode:
		return nil, p.initializeNode(ctx, a)
	case lifecycle.ReleaseHold:
		return nil, p.releaseHold(ctx, a)
	case lifecycle.TaintNode:
		return nil, p.taintNode(ctx, a)
	case lifecycle.DeleteClaim:
		return nil, p.deleteClaim(ctx, a)
	case lifecycle.DeleteNode:
		return nil, p.deleteNode(ctx, a)
	case lifecycle.Drain:
		return p.drain(ctx, a)
	case lifecycle.Terminate:
		return p.terminate(ctx, a)
	case lifecycle.AwaitTermination:
		return p.awaitTermination(ctx, a)
	case lifecycle.RemoveNodeFinalizer:
		return nil, p.removeNodeFinalizer(ctx, a)
	case lifecycle.RemoveClaimFinalizer:
		return nil, p.removeClaimFinalizer(ctx, a)
	}
	return nil, errUnknownAction
}

// effectTimeout bounds a whole action; cloud calls have the adapter's own deadlines within it.
func effectTimeout(action lifecycle.Action) time.Duration {
	switch action.(type) {
	case lifecycle.Launch:
		return 80 * time.Second // shorter than lifecycle.Config.LaunchActionTimeout
	}
	return 25 * time.Second // shorter than lifecycle.Config.ActionTimeout
}
