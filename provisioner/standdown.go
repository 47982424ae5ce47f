// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"context"
	"encoding/json"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/jit-scheduler/jit-scheduler/provisioner/lifecycle"
)

const (
	// reasonKarpenter is the reason of events, on pods and NodePools, while Karpenter leads.
	reasonKarpenter = "KarpenterRunning"
	// sayEvery repeats the event on NodePools: events are forgotten after an hour.
	sayEvery = 30 * time.Minute
)

// alternate provisions whenever no Karpenter does, until ctx ends. Each time it begins like a new leader: what a
// Karpenter did meanwhile is found in the objects. decided is called when it is known for the first time who provisions,
// and if it is us, when all NodeClaims are known.
func (p *Provisioner) alternate(ctx context.Context, decided func()) {
	logger := klog.FromContext(ctx)
	for {
		if !p.karpenter.await(ctx, p.karpenter.known) {
			return
		}
		if err := p.karpenter.blocks(); err != nil {
			logger.Info("Scheduling only: nothing is launched or removed", "reason", err.Error())
			decided()
			p.sayWhileBlocked(ctx)
		}
		if !p.karpenter.await(ctx, p.karpenter.free) {
			return
		}
		term, end := context.WithCancel(ctx)
		p.mu.Lock()
		p.ctx = term
		p.mu.Unlock()
		p.term.Go(func() {
			p.provision(term)
			decided()
		})
		p.karpenter.await(ctx, p.karpenter.blocked)
		p.mu.Lock()
		end() // under the lock: nothing is begun after it
		p.mu.Unlock()
		if ctx.Err() != nil {
			return
		}
		logger.Info("Standing down")
		p.term.Wait()
		if p.crds != nil {
			p.crds.Shutdown()
			p.crds = nil
		}
		p.standDown()
		p.releaseHolds(ctx)
	}
}

// sayWhileBlocked tells users where they look, again and again until Karpenter has stopped.
func (p *Provisioner) sayWhileBlocked(ctx context.Context) {
	for ctx.Err() == nil {
		err := p.karpenter.blocks()
		if err == nil {
			return
		}
		p.sayOnPools(ctx, err.Error())
		p.wakeWaiting(true) // pods that were refused for another reason hear of it as well
		once, cancel := context.WithTimeout(ctx, sayEvery)
		p.karpenter.await(once, p.karpenter.free)
		cancel()
	}
}

// sayOnPools records the event on every NodePool that is ours to provision for, best effort.
func (p *Provisioner) sayOnPools(ctx context.Context, message string) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	list, err := p.Dynamic.Resource(nodePools).List(ctx, metav1.ListOptions{})
	if err != nil {
		klog.FromContext(ctx).V(2).Info("Listing NodePools", "err", err)
		return
	}
	for i := range list.Items {
		pool := &list.Items[i]
		ref := &v1.ObjectReference{APIVersion: pool.GetAPIVersion(), Kind: pool.GetKind(), Name: pool.GetName(), UID: pool.GetUID()}
		p.Recorder.Eventf(ref, nil, v1.EventTypeWarning, reasonKarpenter, "Provisioning", "%s", cut(message))
	}
}

// standDown forgets everything that was planned, as a leader that ends: its pods are scheduled onto what is there, and
// NodeClaims on their way are left to Karpenter, which takes up every one.
func (p *Provisioner) standDown() {
	p.mu.Lock()
	defer p.mu.Unlock()
	var pods []types.UID
	for _, o := range p.pods.GetStore().List() {
		pod, ok := o.(*v1.Pod)
		if !ok || pod.Spec.NodeName != "" {
			continue
		}
		if claim, node := p.state.Reservation(pod.UID); claim != "" || node != "" {
			pods = append(pods, pod.UID)
			p.hints.clear(ledgerPod(pod))
		}
	}
	planned := p.state
	p.forget()
	p.sched.Unpark(pods)
	for c := range planned.Claims() {
		if planned.Planned(c.Name) {
			p.sched.RemovePlannedNode(c.Name)
		}
	}
}

// forget makes the state that of a process that has not led. mu is held.
func (p *Provisioner) forget() {
	p.ctx, p.synced, p.offering = nil, false, false
	p.state = lifecycle.New(lifecycle.Config{})
	p.pools, p.classes = map[string]*poolState{}, map[string]*classState{}
	p.expected, p.standIns = map[types.UID]*expectation{}, map[types.UID]*v1.Pod{}
	p.failures, p.foreign = map[string]string{}, map[string]string{}
	p.others, p.undecided, p.deciding = map[string]types.UID{}, map[string]*karpv1.NodeClaim{}, map[string]bool{}
	p.gates.Store(&map[string]Gate{})
}

// releaseHolds opens the nodes that were held for pods: nobody will come back to them. It is all that is done to the
// cluster while Karpenter leads, and undoes only what we did.
func (p *Provisioner) releaseHolds(ctx context.Context) {
	nodes, err := p.Informers.Core().V1().Nodes().Lister().List(labels.Everything())
	if err != nil {
		return // only for a selector that cannot be read
	}
	for _, node := range nodes {
		if value, held := node.Annotations[lifecycle.HoldAnnotation]; !held || value == lifecycle.HoldKeep {
			continue
		}
		err := retry.RetryOnConflict(retry.DefaultBackoff, func() error { return p.uncordon(ctx, node.Name) })
		if err != nil {
			klog.FromContext(ctx).Error(err, "Releasing a held node", "node", node.Name)
		}
	}
}

func (p *Provisioner) uncordon(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	node, err := p.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if value, held := node.Annotations[lifecycle.HoldAnnotation]; !held || value == lifecycle.HoldKeep {
		return nil
	}
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{
			"resourceVersion": node.ResourceVersion, "annotations": map[string]any{lifecycle.HoldAnnotation: nil},
		},
		"spec": map[string]any{"unschedulable": nil},
	})
	if err != nil {
		return err
	}
	if err := p.leads(); err != nil {
		return err
	}
	_, err = p.Client.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{})
	return err
}

// mayAct is asked right before each mutating call: the lease must be ours, and no Karpenter may lead.
func (p *Provisioner) mayAct() error {
	if err := p.leads(); err != nil {
		return err
	}
	return p.karpenter.blocks()
}
