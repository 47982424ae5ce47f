// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/awslabs/operatorpkg/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// poolState is what is known of a NodePool.
type poolState struct {
	pool    *karpv1.NodePool
	unknown []string
	pending bool // a status write is on its way
}

const (
	// statusDelay gathers changes of a pool's usage into one status write.
	statusDelay = 200 * time.Millisecond
	// statusRetry is when a write that failed is repeated.
	statusRetry = 5 * time.Second
)

// ours says whether we provision for the pool: dynamic, of our class kind, not being deleted. Others are not touched
// at all, not even their status.
func ours(pool *karpv1.NodePool) bool {
	ref := pool.Spec.Template.Spec.NodeClassRef
	return ref != nil && ref.Group == nodeClasses.Group && ref.Kind == "EC2NodeClass" &&
		pool.Spec.Replicas == nil && pool.DeletionTimestamp.IsZero()
}

// statusDue schedules a status write of a pool; mu is held.
func (p *Provisioner) statusDue(name string) { p.statusIn(name, statusDelay) }

func (p *Provisioner) statusIn(name string, delay time.Duration) {
	st := p.pools[name]
	if st == nil || st.pending || p.ctx == nil || !ours(st.pool) {
		return
	}
	st.pending = true
	ctx := p.ctx
	time.AfterFunc(delay, func() {
		if err := p.writePool(ctx, name); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Writing NodePool status, will retry", "nodePool", name)
			p.mu.Lock()
			defer p.mu.Unlock()
			p.statusIn(name, statusRetry)
		}
	})
}

// writePool patches a pool's status and hash annotations if they differ from what they should be.
func (p *Provisioner) writePool(ctx context.Context, name string) error {
	p.mu.Lock()
	st := p.pools[name]
	if st == nil || ctx.Err() != nil {
		p.mu.Unlock()
		return nil
	}
	st.pending = false
	pool := st.pool.DeepCopy()
	want := pool.DeepCopy()
	p.poolConditions(want, st.unknown)
	usage := p.state.Usage(name)
	p.mu.Unlock()

	want.Status.Resources = v1.ResourceList{
		v1.ResourceCPU: zero, v1.ResourceMemory: zero, v1.ResourcePods: zero, v1.ResourceEphemeralStorage: zero, "nodes": zero,
	}
	maps.Copy(want.Status.Resources, usage)
	nodes := want.Status.Resources.Name("nodes", resource.DecimalSI).Value()
	want.Status.Nodes = &nodes
	meta := pool.DeepCopy()
	if meta.Annotations == nil {
		meta.Annotations = map[string]string{}
	}
	meta.Annotations[karpv1.NodePoolHashAnnotationKey] = pool.Hash()
	meta.Annotations[karpv1.NodePoolHashVersionAnnotationKey] = karpv1.NodePoolHashVersion
	if err := p.patch(ctx, nodePools, pool, meta, ""); err != nil {
		return err
	}
	return p.patch(ctx, nodePools, pool, want, "status")
}

var zero = resource.MustParse("0")

// poolConditions sets the conditions that decide whether the pool may open NodeClaims; mu is held.
func (p *Provisioner) poolConditions(pool *karpv1.NodePool, unknown []string) {
	conds := pool.StatusConditions()
	err := pool.RuntimeValidate(context.Background())
	switch {
	case len(unknown) > 0:
		conds.SetFalse(karpv1.ConditionTypeValidationSucceeded, "UnknownFields", "this version does not know "+strings.Join(unknown, ", "))
	case err != nil:
		conds.SetFalse(karpv1.ConditionTypeValidationSucceeded, "NodePoolValidationFailed", err.Error())
	default:
		conds.SetTrue(karpv1.ConditionTypeValidationSucceeded)
	}
	ref := pool.Spec.Template.Spec.NodeClassRef
	class := p.classes[ref.Name]
	switch {
	case class == nil:
		conds.SetFalse(karpv1.ConditionTypeNodeClassReady, "NodeClassNotFound", fmt.Sprintf("EC2NodeClass %q not found", ref.Name))
	case !class.class.DeletionTimestamp.IsZero():
		conds.SetFalse(karpv1.ConditionTypeNodeClassReady, "NodeClassTerminating", fmt.Sprintf("EC2NodeClass %q is being deleted", ref.Name))
	case class.resolved == nil:
		conds.SetUnknownWithReason(karpv1.ConditionTypeNodeClassReady, "NodeClassReadinessUnknown", "EC2NodeClass is being resolved")
	case !class.resolved.StatusConditions().Root().IsTrue():
		root := class.resolved.StatusConditions().Root()
		conds.SetFalse(karpv1.ConditionTypeNodeClassReady, root.Reason, unhealthy(class.resolved.GetConditions(), root.Message))
	default:
		conds.SetTrue(karpv1.ConditionTypeNodeClassReady)
		pool.Status.NodeClassObservedGeneration = class.class.Generation
	}
}

// unhealthy says in words what is wrong: the messages of the conditions that are not True, otherwise without them.
func unhealthy(conds []status.Condition, otherwise string) string {
	var out []string
	for _, c := range conds {
		if c.Type != status.ConditionReady && c.Status != metav1.ConditionTrue && c.Message != "" && c.Reason != "AwaitingReconciliation" {
			out = append(out, c.Message)
		}
	}
	if len(out) == 0 {
		return otherwise
	}
	return strings.Join(out, "; ")
}

// notReady is why a pool may open nothing now, "" if it may; mu is held.
func (p *Provisioner) notReady(st *poolState) string {
	pool := st.pool.DeepCopy()
	p.poolConditions(pool, st.unknown)
	if root := pool.StatusConditions().Root(); !root.IsTrue() {
		return unhealthy(pool.GetConditions(), root.Message)
	}
	if until, why, blocked := p.state.Blocked(pool.Name); blocked && time.Now().Before(until) {
		return "its last launch was refused: " + why
	}
	return ""
}
