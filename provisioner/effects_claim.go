// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"context"
	"fmt"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/jit-scheduler/jit-scheduler/provisioner/lifecycle"
)

// createClaim creates the NodeClaim. One that exists already under our launch group is our own, from before a reply
// was lost. A refusal that repeating cannot cure is final.
func (p *Provisioner) createClaim(ctx context.Context, a lifecycle.CreateClaim) ([]lifecycle.Event, error) {
	raw, err := encode(a.Object)
	if err != nil {
		return nil, err
	}
	delete(raw, "status")
	if err := p.Leading(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	claims := p.Dynamic.Resource(nodeClaims)
	u, err := claims.Create(ctx, &unstructured.Unstructured{Object: raw}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		u, err = claims.Get(ctx, a.Object.Name, metav1.GetOptions{})
		if err == nil && u.GetAnnotations()[lifecycle.GroupAnnotation] != a.Object.Annotations[lifecycle.GroupAnnotation] {
			return []lifecycle.Event{lifecycle.ClaimRefused{Name: a.Object.Name, Message: "a NodeClaim of that name exists"}}, nil
		}
	}
	switch {
	case err == nil:
		claim, _, err := decode[karpv1.NodeClaim](u)
		if err != nil {
			return nil, err
		}
		return []lifecycle.Event{lifecycle.ClaimSeen{Claim: claim}}, nil
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
		return []lifecycle.Event{lifecycle.ClaimRefused{Name: a.Object.Name, Message: err.Error()}}, nil
	}
	return nil, fmt.Errorf("creating NodeClaim: %w", err)
}

// patchClaim brings metadata and status of a claim to what the state machine wants.
func (p *Provisioner) patchClaim(ctx context.Context, a lifecycle.PatchClaim) ([]lifecycle.Event, error) {
	obj, err := p.Dynamic.Resource(nodeClaims).Get(ctx, a.Claim.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	have, _, err := decode[karpv1.NodeClaim](obj)
	if err != nil {
		return nil, err
	}
	meta := have.DeepCopy()
	meta.Labels = mapOf(have.Labels, a.Claim.Labels)
	meta.Annotations = mapOf(have.Annotations, a.Claim.Annotations)
	if err := p.patch(ctx, nodeClaims, have, meta, ""); err != nil {
		return nil, err
	}
	status := have.DeepCopy()
	status.Status = a.Claim.Status
	if err := p.patch(ctx, nodeClaims, have, status, "status"); err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.statusDue(a.Claim.Labels[karpv1.NodePoolLabelKey])
	p.mu.Unlock()
	return nil, nil
}

func (p *Provisioner) deleteClaim(ctx context.Context, a lifecycle.DeleteClaim) error {
	if err := p.Leading(); err != nil {
		return err
	}
	opts := metav1.DeleteOptions{}
	if a.UID != "" {
		opts.Preconditions = &metav1.Preconditions{UID: &a.UID}
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := p.Dynamic.Resource(nodeClaims).Delete(ctx, a.Name, opts)
	if err != nil && !apierrors.IsConflict(err) { // in conflict: another one of its name
		return fmt.Errorf("deleting NodeClaim: %w", err)
	}
	return nil
}

func (p *Provisioner) removeClaimFinalizer(ctx context.Context, a lifecycle.RemoveClaimFinalizer) error {
	return p.removeFinalizer(ctx, nodeClaims, a.Name, a.UID, karpv1.TerminationFinalizer)
}

// tag writes the tags of an instance that depend on its claim and its node, and, for machines that an old Karpenter
// launched, the cluster's name.
func (p *Provisioner) tag(ctx context.Context, a lifecycle.TagInstance) error {
	if err := p.Leading(); err != nil {
		return err
	}
	tags := map[string]string{
		awsv1.NameTagKey: a.Node, awsv1.NodeClaimTagKey: a.Claim, awsv1.EKSClusterNameTagKey: p.ClusterName,
	}
	if err := p.Cloud.Tag(ctx, a.ProviderID, tags); err != nil {
		return fmt.Errorf("tagging: %w", err)
	}
	return nil
}
