// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/klog/v2"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
	"github.com/jit-scheduler/jit-scheduler/provisioner/lifecycle"
)

// classState is what is known of an EC2NodeClass. resolved is the status as of this leadership: only then its types
// may be used, and only after the claims that were not launched yet were restored.
type classState struct {
	class    *awsv1.EC2NodeClass
	unknown  []string
	resolved *awsv1.EC2NodeClass
	due      chan struct{}
	stop     context.CancelFunc
	// measuredPending: what was learned about its machines is about to be written.
	measuredPending bool
	// recalled: what was learned before is taken up.
	recalled bool
}

// now has the class resolved without waiting for its turn.
func (st *classState) now() {
	select {
	case st.due <- struct{}{}:
	default:
	}
}

const (
	// resolveEvery is Karpenter's for subnets, and for whatever was not found. The provider keeps for longer what changes less.
	resolveEvery = time.Minute
	// resolveTimeout covers all calls of one Resolve.
	resolveTimeout = time.Minute
	// resolveRetry is the first back-off after a fault; it doubles up to resolveEvery.
	resolveRetry = time.Second
)

// resolveClass keeps one EC2NodeClass's status true until ctx ends.
func (p *Provisioner) resolveClass(ctx context.Context, name string, due <-chan struct{}) {
	retry, wait := resolveRetry, time.Duration(0)
	for {
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-due:
			retry = resolveRetry
		case <-timer.C:
		}
		timer.Stop()
		if err := p.resolveOnce(ctx, name); err != nil {
			if ctx.Err() != nil {
				return
			}
			if errors.Is(err, errClassInUse) {
				klog.FromContext(ctx).Info("EC2NodeClass is being deleted", "ec2NodeClass", name, "waiting", err.Error(), "in", retry)
			} else {
				klog.FromContext(ctx).Error(err, "Resolving EC2NodeClass, will retry", "ec2NodeClass", name, "in", retry)
			}
			wait, retry = retry, min(2*retry, resolveEvery)
			continue
		}
		wait, retry = resolveEvery, resolveRetry
	}
}

func (p *Provisioner) resolveOnce(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	p.mu.Lock()
	st := p.classes[name]
	if st == nil {
		p.mu.Unlock()
		return nil
	}
	class, unknown := st.class.DeepCopy(), slices.Clone(st.unknown)
	p.mu.Unlock()
	if !class.DeletionTimestamp.IsZero() {
		return p.finishClass(ctx, class)
	}
	if err := p.Leading(); err != nil { // the instance profile may be created
		return err
	}
	status, err := p.Cloud.Resolve(ctx, class)
	if status == nil {
		return fmt.Errorf("resolving: %w", err)
	}
	want := class.DeepCopy()
	want.Status = *status
	if len(unknown) > 0 {
		want.StatusConditions().SetFalse(awsv1.ConditionTypeValidationSucceeded, "UnknownFields",
			"this version does not know "+strings.Join(unknown, ", "))
	}
	if perr := p.patchClass(ctx, class, want); perr != nil {
		return perr
	}
	p.classResolved(want)
	return err
}

// classResolved makes the class's types usable: claims that wait for their launch get their options back first, so
// that the planner finds them before it opens others.
func (p *Provisioner) classResolved(class *awsv1.EC2NodeClass) {
	p.mu.Lock()
	defer p.mu.Unlock()
	st := p.classes[class.Name]
	if st == nil {
		return
	}
	first := st.resolved == nil
	was := first || st.resolved.StatusConditions().Root().IsTrue()
	st.resolved = class
	if !st.recalled && class.StatusConditions().Root().IsTrue() {
		st.recalled = true
		p.recall(class)
	}
	if class.StatusConditions().Root().IsTrue() {
		p.restoreClaims(class)
	}
	if first || was != class.StatusConditions().Root().IsTrue() {
		p.changedLocked()
	}
	for name, ps := range p.pools {
		if ps.pool.Spec.Template.Spec.NodeClassRef.Name == class.Name {
			p.statusDue(name)
		}
	}
}

// errClassInUse is no fault: the last claim to go, or the next look, lets the class go as well.
var errClassInUse = errors.New("NodeClaims of the class have to go first")

// finishClass lets a deleted class go once none of its NodeClaims is left.
func (p *Provisioner) finishClass(ctx context.Context, class *awsv1.EC2NodeClass) error {
	if !slices.Contains(class.Finalizers, awsv1.TerminationFinalizer) {
		return nil
	}
	p.mu.Lock()
	n := 0
	for c := range p.state.Claims() {
		if ref := c.Object.Spec.NodeClassRef; ref != nil && ref.Name == class.Name {
			n++
		}
	}
	p.mu.Unlock()
	if n > 0 {
		return fmt.Errorf("%w: %d", errClassInUse, n)
	}
	if err := p.Leading(); err != nil {
		return err
	}
	if err := p.Cloud.Forget(ctx, class.Name); err != nil {
		return fmt.Errorf("removing launch templates and instance profile: %w", err)
	}
	return p.removeFinalizer(ctx, nodeClasses, class.Name, class.UID, awsv1.TerminationFinalizer)
}

// patchClass writes status, hash annotations and our finalizer, each only if it differs. Never a PUT: a newer
// Karpenter's fields stay as they are.
func (p *Provisioner) patchClass(ctx context.Context, old, want *awsv1.EC2NodeClass) error {
	annotations := map[string]string{}
	if want.StatusConditions().Get(awsv1.ConditionTypeAMIsReady).IsTrue() { // Hash ends the process on a malformed alias
		annotations[awsv1.AnnotationEC2NodeClassHash] = classHash(want)
		annotations[awsv1.AnnotationEC2NodeClassHashVersion] = awsv1.EC2NodeClassHashVersion
	}
	if !slices.Contains(old.Finalizers, awsv1.TerminationFinalizer) || !has(old.Annotations, annotations) {
		if err := p.editClass(ctx, old, annotations); err != nil {
			return err
		}
	}
	status := old.DeepCopy()
	status.Status = want.Status
	return p.patch(ctx, nodeClasses, old, status, "status")
}

// editClass adds annotations and our finalizer to the class that was resolved.
func (p *Provisioner) editClass(ctx context.Context, class *awsv1.EC2NodeClass, annotations map[string]string) error {
	return p.editObject(ctx, nodeClasses, class.Name, func(u *unstructured.Unstructured) {
		if u.GetUID() != class.UID || u.GetDeletionTimestamp() != nil {
			return // another one of its name; or it is going, and takes no finalizers
		}
		u.SetAnnotations(mapOf(u.GetAnnotations(), annotations))
		if !slices.Contains(u.GetFinalizers(), awsv1.TerminationFinalizer) {
			u.SetFinalizers(append(u.GetFinalizers(), awsv1.TerminationFinalizer))
		}
	})
}

// has says whether m has all of part.
func has(m, part map[string]string) bool {
	for k, v := range part {
		if m[k] != v {
			return false
		}
	}
	return true
}

func classHash(c *awsv1.EC2NodeClass) string { return c.Hash(nil) }

// restoreClaims gives claims that a former leader did not finish, or that were made by hand, their options; mu is held.
// Types and filters are asked for once, however many claims there are.
func (p *Provisioner) restoreClaims(class *awsv1.EC2NodeClass) {
	var offered []*cloudprovider.InstanceType
	var restores []lifecycle.Restore
	for c := range p.state.Claims() {
		if ref := c.Object.Spec.NodeClassRef; !c.NeedsRestore || ref == nil || ref.Name != class.Name {
			continue
		}
		if offered == nil {
			var err error
			if offered, err = p.instanceTypes(class); err != nil {
				return
			}
		}
		types := offered
		if pool := p.pools[c.Pool]; pool != nil {
			types, _ = p.typesOf(pool.pool, offered)
		}
		if ev, ok := restore(c.Object, types); ok {
			restores = append(restores, ev)
		}
	}
	var nodes []*v1.Node
	for i := range restores {
		nodes = append(nodes, restores[i].Node)
	}
	var evs []lifecycle.Event
	for i, daemons := range p.daemonsOn(nodes) {
		restores[i].Daemons = daemons
		evs = append(evs, restores[i])
	}
	p.applyLocked(evs...)
}
