// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/jit-scheduler/jit-scheduler/provisioner/lifecycle"
)

// editNode reads a Node, lets edit change a copy, and patches the difference under the version that was read:
// taints are a list, and a list must not be overwritten blindly.
func (p *Provisioner) editNode(ctx context.Context, name string, edit func(*v1.Node)) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	// The kubelet and the node lifecycle controller write at the same time: a conflict is no fault.
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error { return p.editNodeOnce(ctx, name, edit) })
}

func (p *Provisioner) editNodeOnce(ctx context.Context, name string, edit func(*v1.Node)) error {
	have, err := p.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	want := have.DeepCopy()
	edit(want)
	body, err := mergePatch(have, want)
	if err != nil || body == nil {
		return err
	}
	have.ResourceVersion = "" // now the patch names the version that was read
	if body, err = mergePatch(have, want); err != nil {
		return err
	}
	if err := p.Leading(); err != nil {
		return err
	}
	if _, err = p.Client.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("patching node: %w", err)
	}
	return nil
}

// registerNode brings the Node to what its claim says and lets DaemonSets in: one patch, so that there is no moment
// in which the node is open and not held.
func (p *Provisioner) registerNode(ctx context.Context, a lifecycle.RegisterNode) error {
	claim := a.Claim
	return p.editNode(ctx, a.Node, func(n *v1.Node) {
		n.Labels = mapOf(n.Labels, claim.Labels, map[string]string{karpv1.NodeRegisteredLabelKey: "true"})
		n.Annotations = mapOf(n.Annotations, userAnnotations(claim.Annotations))
		if !slices.Contains(n.Finalizers, karpv1.TerminationFinalizer) {
			n.Finalizers = append(n.Finalizers, karpv1.TerminationFinalizer)
		}
		block := true
		owner := metav1.OwnerReference{
			APIVersion: "karpenter.sh/v1", Kind: "NodeClaim", Name: claim.Name, UID: claim.UID, BlockOwnerDeletion: &block,
		}
		if !slices.ContainsFunc(n.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == claim.UID }) {
			n.OwnerReferences = append(n.OwnerReferences, owner)
		}
		if n.Labels[karpv1.NodeDoNotSyncTaintsLabelKey] != "true" {
			n.Spec.Taints = mergeTaints(n.Spec.Taints, claim.Spec.Taints, claim.Spec.StartupTaints)
		}
		n.Spec.Taints = withoutTaint(n.Spec.Taints, unregistered.Key)
		if a.Hold && !n.Spec.Unschedulable {
			n.Spec.Unschedulable = true
			n.Annotations[lifecycle.HoldAnnotation] = strconv.FormatInt(a.HoldUntil, 10)
		}
	})
}

// userAnnotations are a claim's annotations without those that are about its launch.
func userAnnotations(a map[string]string) map[string]string {
	out := maps.Clone(a)
	for _, k := range []string{lifecycle.GroupAnnotation, lifecycle.OrdinalAnnotation, lifecycle.SizeAnnotation, lifecycle.AttemptAnnotation} {
		delete(out, k)
	}
	return out
}

func mergeTaints(have []v1.Taint, more ...[]v1.Taint) []v1.Taint {
	out := slices.Clone(have)
	for _, taints := range more {
		for _, t := range taints {
			if !slices.ContainsFunc(out, func(o v1.Taint) bool { return o.MatchTaint(&t) }) {
				out = append(out, t)
			}
		}
	}
	return out
}

func withoutTaint(taints []v1.Taint, key string) []v1.Taint {
	return slices.DeleteFunc(slices.Clone(taints), func(t v1.Taint) bool { return t.Key == key })
}

func (p *Provisioner) initializeNode(ctx context.Context, a lifecycle.InitializeNode) error {
	return p.editNode(ctx, a.Node, func(n *v1.Node) {
		n.Labels = mapOf(n.Labels, map[string]string{karpv1.NodeInitializedLabelKey: "true"})
	})
}

// releaseHold opens a held node to everybody. A hold that is no longer ours (the annotation is gone, or says keep)
// is left alone.
func (p *Provisioner) releaseHold(ctx context.Context, a lifecycle.ReleaseHold) error {
	return p.editNode(ctx, a.Node, func(n *v1.Node) {
		until, held := n.Annotations[lifecycle.HoldAnnotation]
		if !held {
			return
		}
		delete(n.Annotations, lifecycle.HoldAnnotation)
		if !a.Keep && until != lifecycle.HoldKeep {
			n.Spec.Unschedulable = false
			// the node lifecycle controller removes it as well, seconds later
			n.Spec.Taints = withoutTaint(n.Spec.Taints, v1.TaintNodeUnschedulable)
		}
	})
}

// disrupted tells everybody that the node is about to go.
var disrupted = karpv1.DisruptedNoScheduleTaint

func (p *Provisioner) taintNode(ctx context.Context, a lifecycle.TaintNode) error {
	return p.editNode(ctx, a.Node, func(n *v1.Node) {
		n.Spec.Taints = withoutTaint(n.Spec.Taints, disrupted.Key)
		if a.Taint {
			n.Spec.Taints = append(n.Spec.Taints, disrupted)
		}
	})
}

func (p *Provisioner) deleteNode(ctx context.Context, a lifecycle.DeleteNode) error {
	if err := p.Leading(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	opts := metav1.DeleteOptions{}
	if a.UID != "" {
		opts.Preconditions = &metav1.Preconditions{UID: &a.UID}
	}
	err := p.Client.CoreV1().Nodes().Delete(ctx, a.Node, opts)
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) { // in conflict: another one of its name
		return fmt.Errorf("deleting node: %w", err)
	}
	return nil
}

func (p *Provisioner) removeNodeFinalizer(ctx context.Context, a lifecycle.RemoveNodeFinalizer) error {
	err := p.editNode(ctx, a.Node, func(n *v1.Node) {
		if a.UID != "" && n.UID != a.UID {
			return // another one of its name
		}
		n.Finalizers = slices.DeleteFunc(n.Finalizers, func(f string) bool { return f == karpv1.TerminationFinalizer })
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
