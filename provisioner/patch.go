// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
)

// callTimeout is the deadline of one API call.
const callTimeout = 15 * time.Second

// patch sends the difference between two versions of a cluster-scoped object as a merge patch, nothing if they are
// equal. The lease is checked right before.
func (p *Provisioner) patch(ctx context.Context, gvr schema.GroupVersionResource, old, want metav1.Object, subresource string) error {
	body, err := mergePatch(old, want)
	if err != nil || body == nil {
		return err
	}
	if err := p.Leading(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var sub []string
	if subresource != "" {
		sub = []string{subresource}
	}
	_, err = p.Dynamic.Resource(gvr).Patch(ctx, want.GetName(), types.MergePatchType, body, metav1.PatchOptions{}, sub...)
	if err != nil {
		return fmt.Errorf("patching %s %s: %w", gvr.Resource, want.GetName(), err)
	}
	return nil
}

// mergePatch is the JSON merge patch from old to want, nil if there is no difference.
func mergePatch(old, want any) ([]byte, error) {
	a, err := json.Marshal(old)
	if err != nil {
		return nil, fmt.Errorf("encoding: %w", err)
	}
	b, err := json.Marshal(want)
	if err != nil {
		return nil, fmt.Errorf("encoding: %w", err)
	}
	body, err := jsonpatch.CreateMergePatch(a, b)
	if err != nil {
		return nil, fmt.Errorf("comparing: %w", err)
	}
	if string(body) == "{}" {
		return nil, nil
	}
	return body, nil
}

// editObject reads a cluster-scoped object, lets edit change a copy, and patches the difference under the version that
// was read, as often as it takes: lists (finalizers) must not be overwritten blindly. Fields that this version does not
// know stay as they are.
func (p *Provisioner) editObject(ctx context.Context, gvr schema.GroupVersionResource, name string, edit func(*unstructured.Unstructured)) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		have, err := p.Dynamic.Resource(gvr).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		want := have.DeepCopy()
		edit(want)
		if equality.Semantic.DeepEqual(have.Object, want.Object) {
			return nil
		}
		have.SetResourceVersion("") // now the patch names the version that was read
		return p.patch(ctx, gvr, have, want, "")
	})
}

// removeFinalizer takes one finalizer off the object of that UID. One that is gone is fine.
func (p *Provisioner) removeFinalizer(ctx context.Context, gvr schema.GroupVersionResource, name string, uid types.UID, finalizer string) error {
	err := p.editObject(ctx, gvr, name, func(u *unstructured.Unstructured) {
		if uid == "" || u.GetUID() == uid {
			u.SetFinalizers(slices.DeleteFunc(u.GetFinalizers(), func(f string) bool { return f == finalizer }))
		}
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("removing the finalizer of %s %s: %w", gvr.Resource, name, err)
	}
	return nil
}
