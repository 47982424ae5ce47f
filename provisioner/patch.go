// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
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

// removeFinalizer takes one finalizer off the version that was read: they are a list, and another one may be put on
// it meanwhile. An object that is gone is fine.
func (p *Provisioner) removeFinalizer(ctx context.Context, gvr schema.GroupVersionResource, have metav1.Object, finalizer string) error {
	if !slices.Contains(have.GetFinalizers(), finalizer) {
		return nil
	}
	rest := slices.DeleteFunc(slices.Clone(have.GetFinalizers()), func(f string) bool { return f == finalizer })
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"finalizers": rest, "resourceVersion": have.GetResourceVersion()}})
	if err != nil {
		return fmt.Errorf("encoding: %w", err)
	}
	if err := p.Leading(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err = p.Dynamic.Resource(gvr).Patch(ctx, have.GetName(), types.MergePatchType, body, metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("removing the finalizer of %s %s: %w", gvr.Resource, have.GetName(), err)
	}
	return nil
}
