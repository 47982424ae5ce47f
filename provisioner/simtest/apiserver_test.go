// SPDX-License-Identifier: Apache-2.0

package simtest

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	clienttesting "k8s.io/client-go/testing"
)

// apiServer makes a fake client behave like an API server where the product can notice: versions and conflicts, the
// status subresource, updates that change nothing, finalizers, graceful deletion of pods, evictions. Reactors run
// under the client's lock, one at a time, so that they may read and then write; they must not call the client.
type apiServer struct {
	tracker clienttesting.ObjectTracker
	next    func() int
	// refuse may answer a create with an error.
	refuse func(gvr schema.GroupVersionResource, obj metav1.Object) error
	// binding is asked before a pod is bound.
	binding func(pod *v1.Pod, node string)
	// wrote and removed are told of changes, under the client's lock.
	wrote   func(gvr schema.GroupVersionResource, obj metav1.Object)
	removed func(gvr schema.GroupVersionResource, obj metav1.Object)
	// stopped has the pod deleted for good when its kubelet has stopped it.
	stopped func(after time.Duration, pod metav1.Object)
}

// react is the reactor of every verb; false passes an action on to the tracker.
func (a *apiServer) react(action clienttesting.Action) (bool, runtime.Object, error) {
	if action.GetResource().Resource == "events" {
		return false, nil, nil
	}
	switch action := action.(type) {
	case clienttesting.CreateActionImpl:
		return a.create(action)
	case clienttesting.UpdateActionImpl:
		obj, err := a.update(action)
		return true, obj, err
	case clienttesting.PatchActionImpl:
		if action.GetPatchType() == types.ApplyPatchType {
			return false, nil, nil
		}
		obj, err := a.patch(action)
		return true, obj, err
	case clienttesting.DeleteActionImpl:
		return true, nil, a.remove(action.GetResource(), action.GetNamespace(), action.GetName(), action.DeleteOptions)
	}
	return false, nil, nil
}

func (a *apiServer) create(action clienttesting.CreateActionImpl) (bool, runtime.Object, error) {
	gvr, ns := action.GetResource(), action.GetNamespace()
	switch sub := action.GetSubresource(); sub {
	case "":
	case "binding":
		return true, action.GetObject(), a.bind(action.GetObject().(*v1.Binding))
	case "eviction":
		e := action.GetObject().(*policyv1.Eviction)
		opts := metav1.DeleteOptions{}
		if e.DeleteOptions != nil {
			opts = *e.DeleteOptions
		}
		return true, e, a.remove(v1.SchemeGroupVersion.WithResource("pods"), e.Namespace, e.Name, opts)
	default:
		return false, nil, nil
	}
	obj, err := accessor(action.GetObject().DeepCopyObject())
	if err != nil {
		return true, nil, err
	}
	if a.refuse != nil {
		if err := a.refuse(gvr, obj); err != nil {
			return true, nil, err
		}
	}
	n := a.next()
	if obj.GetUID() == "" {
		obj.SetUID(types.UID("uid-" + strconv.Itoa(n)))
	}
	obj.SetNamespace(ns)
	obj.SetCreationTimestamp(metav1.Now().Rfc3339Copy())
	obj.SetResourceVersion(strconv.Itoa(n))
	obj.SetGeneration(1)
	if err := a.tracker.Create(gvr, obj.(runtime.Object), ns); err != nil {
		return true, nil, err
	}
	a.wrote(gvr, obj)
	out, err := a.tracker.Get(gvr, ns, obj.GetName())
	return true, out, err
}

// bind writes spec.nodeName as the binding subresource does.
func (a *apiServer) bind(b *v1.Binding) error {
	pods := v1.SchemeGroupVersion.WithResource("pods")
	obj, err := a.tracker.Get(pods, b.Namespace, b.Name)
	if err != nil {
		return err
	}
	pod := obj.(*v1.Pod).DeepCopy()
	if pod.DeletionTimestamp != nil || pod.Spec.NodeName != "" || b.UID != "" && b.UID != pod.UID {
		return apierrors.NewConflict(pods.GroupResource(), b.Name, fmt.Errorf("pod %s is being deleted or is bound to %q", b.Name, pod.Spec.NodeName))
	}
	a.binding(pod, b.Target.Name)
	pod.Spec.NodeName = b.Target.Name
	pod.Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionTrue}}
	pod.ResourceVersion = strconv.Itoa(a.next())
	if err := a.tracker.Update(pods, pod, b.Namespace); err != nil {
		return err
	}
	a.wrote(pods, pod)
	return nil
}

func (a *apiServer) update(action clienttesting.UpdateActionImpl) (runtime.Object, error) {
	obj, err := accessor(action.GetObject())
	if err != nil {
		return nil, err
	}
	return a.change(action, obj.GetName(), func(_ runtime.Object, _ []byte) (map[string]any, error) {
		return asMap(action.GetObject())
	})
}

func (a *apiServer) patch(action clienttesting.PatchActionImpl) (runtime.Object, error) {
	return a.change(action, action.GetName(), func(old runtime.Object, raw []byte) (map[string]any, error) {
		var merged []byte
		var err error
		switch action.GetPatchType() {
		case types.MergePatchType:
			merged, err = jsonpatch.MergePatch(raw, action.GetPatch())
		case types.StrategicMergePatchType:
			merged, err = strategicpatch.StrategicMergePatch(raw, action.GetPatch(), old)
		default:
			err = fmt.Errorf("patch type %s is not served", action.GetPatchType())
		}
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		out := map[string]any{}
		return out, json.Unmarshal(merged, &out)
	})
}

// change replaces what a writer of the (sub)resource may write.
func (a *apiServer) change(action clienttesting.Action, name string, edit func(old runtime.Object, raw []byte) (map[string]any, error)) (runtime.Object, error) {
	gvr, ns := action.GetResource(), action.GetNamespace()
	old, err := a.tracker.Get(gvr, ns, name)
	if err != nil {
		return nil, err
	}
	was, err := asMap(old)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(was)
	if err != nil {
		return nil, err
	}
	want, err := edit(old, raw)
	if err != nil {
		return nil, err
	}
	if err := conflict(gvr, name, was, want); err != nil {
		return nil, err
	}
	now := writable(was, want, action.GetSubresource())
	if reflect.DeepEqual(was, now) {
		return old, nil
	}
	obj, err := a.store(gvr, ns, old, was, now)
	if err != nil {
		return nil, err
	}
	return obj, nil
}

func (a *apiServer) store(gvr schema.GroupVersionResource, ns string, old runtime.Object, was, now map[string]any) (runtime.Object, error) {
	meta := now["metadata"].(map[string]any)
	meta["resourceVersion"] = strconv.Itoa(a.next())
	if g, ok := was["metadata"].(map[string]any)["generation"]; ok && !reflect.DeepEqual(was["spec"], now["spec"]) {
		meta["generation"] = int64(g.(float64)) + 1
	}
	obj, err := fromMap(old, now)
	if err != nil {
		return nil, err
	}
	m, err := accessor(obj)
	if err != nil {
		return nil, err
	}
	if m.GetDeletionTimestamp() != nil && len(m.GetFinalizers()) == 0 && gvr.Resource != "pods" {
		return obj, a.drop(gvr, ns, m)
	}
	if err := a.tracker.Update(gvr, obj, ns); err != nil {
		return nil, err
	}
	a.wrote(gvr, m)
	return obj, nil
}

// writable is the old object with what a write to the subresource may change.
func writable(was, want map[string]any, sub string) map[string]any {
	now := maps.Clone(was)
	if sub == "status" {
		now["status"] = want["status"]
		if want["status"] == nil {
			delete(now, "status")
		}
		return now
	}
	now = maps.Clone(want)
	if _, ok := was["status"]; ok {
		now["status"] = was["status"]
	} else {
		delete(now, "status")
	}
	meta := maps.Clone(want["metadata"].(map[string]any))
	for _, key := range []string{"uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "resourceVersion", "managedFields"} {
		if v, ok := was["metadata"].(map[string]any)[key]; ok {
			meta[key] = v
		} else {
			delete(meta, key)
		}
	}
	now["metadata"] = meta
	return now
}

func conflict(gvr schema.GroupVersionResource, name string, was, want map[string]any) error {
	old, meta := was["metadata"].(map[string]any), want["metadata"].(map[string]any)
	for _, key := range []string{"uid", "resourceVersion"} {
		if v, ok := meta[key]; ok && v != "" && v != old[key] {
			return apierrors.NewConflict(gvr.GroupResource(), name, fmt.Errorf("%s is %v, not %v", key, old[key], v))
		}
	}
	return nil
}

// remove deletes, or marks for deletion what has finalizers or a grace period.
func (a *apiServer) remove(gvr schema.GroupVersionResource, ns, name string, opts metav1.DeleteOptions) error {
	old, err := a.tracker.Get(gvr, ns, name)
	if err != nil {
		return err
	}
	obj, err := accessor(old.DeepCopyObject())
	if err != nil {
		return err
	}
	if p := opts.Preconditions; p != nil && p.UID != nil && *p.UID != obj.GetUID() {
		return apierrors.NewConflict(gvr.GroupResource(), name, fmt.Errorf("uid is %s, not %s", obj.GetUID(), *p.UID))
	}
	grace := a.grace(obj, opts)
	if len(obj.GetFinalizers()) == 0 && grace == 0 {
		return a.drop(gvr, ns, obj)
	}
	if obj.GetDeletionTimestamp() != nil {
		return nil
	}
	at := metav1.NewTime(time.Now().Add(grace)).Rfc3339Copy()
	seconds := int64(grace / time.Second)
	obj.SetDeletionTimestamp(&at)
	obj.SetDeletionGracePeriodSeconds(&seconds)
	obj.SetResourceVersion(strconv.Itoa(a.next()))
	if err := a.tracker.Update(gvr, obj.(runtime.Object), ns); err != nil {
		return err
	}
	a.wrote(gvr, obj)
	if grace > 0 {
		a.stopped(grace, obj)
	}
	return nil
}

// grace is how long a bound pod's kubelet takes to stop it; everything else goes at once.
func (a *apiServer) grace(obj metav1.Object, opts metav1.DeleteOptions) time.Duration {
	pod, ok := obj.(*v1.Pod)
	switch {
	case !ok || pod.Spec.NodeName == "":
		return 0
	case opts.GracePeriodSeconds != nil:
		return time.Duration(*opts.GracePeriodSeconds) * time.Second
	case pod.Spec.TerminationGracePeriodSeconds != nil:
		return time.Duration(*pod.Spec.TerminationGracePeriodSeconds) * time.Second
	}
	return 30 * time.Second
}

func (a *apiServer) drop(gvr schema.GroupVersionResource, ns string, obj metav1.Object) error {
	if err := a.tracker.Delete(gvr, ns, obj.GetName()); err != nil {
		return err
	}
	a.removed(gvr, obj)
	return nil
}

func accessor(obj runtime.Object) (metav1.Object, error) {
	m, ok := obj.(metav1.Object)
	if !ok {
		return nil, fmt.Errorf("%T has no metadata", obj)
	}
	return m, nil
}

// asMap is the object as JSON sees it.
func asMap(obj runtime.Object) (map[string]any, error) {
	raw, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	return out, json.Unmarshal(raw, &out)
}

// fromMap makes an object of the same type as like.
func fromMap(like runtime.Object, m map[string]any) (runtime.Object, error) {
	raw, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	if _, ok := like.(*unstructured.Unstructured); ok {
		u := &unstructured.Unstructured{}
		return u, u.UnmarshalJSON(raw)
	}
	obj := reflect.New(reflect.TypeOf(like).Elem()).Interface().(runtime.Object)
	return obj, json.Unmarshal(raw, obj)
}

// ownedBy says whether obj has an owner with the uid.
func ownedBy(obj metav1.Object, uid types.UID) bool {
	return slices.ContainsFunc(obj.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.UID == uid })
}
