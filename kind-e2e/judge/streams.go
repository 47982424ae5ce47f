// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
)

// streams are the watches of the judge.
func streams(kube kubernetes.Interface, dyn dynamic.Interface, to sink) []*stream {
	core := kube.CoreV1()
	all := metav1.NamespaceAll
	claims := claimStream(dyn)
	claims.mayBeAbsent = true
	result := []*stream{
		newStream("pods", core.Pods(all).List, core.Pods(all).Watch, func(o *Observation, pod *corev1.Pod) { o.Pod = pod }),
		newStream("nodes", core.Nodes().List, core.Nodes().Watch, func(o *Observation, node *corev1.Node) { o.Node = node }),
		newStream("events", core.Events(all).List, core.Events(all).Watch, func(o *Observation, event *corev1.Event) { o.Event = event }),
		newStream("persistentvolumeclaims", core.PersistentVolumeClaims(all).List, core.PersistentVolumeClaims(all).Watch,
			func(o *Observation, pvc *corev1.PersistentVolumeClaim) { o.PVC = pvc }),
		claims,
	}
	for _, s := range result {
		s.sink = to
		s.up = make(chan struct{})
		s.known = map[types.UID]Observation{}
		s.gone = map[types.UID]bool{}
	}
	return result
}

// newStream follows a typed resource.
func newStream[O interface {
	runtime.Object
	metav1.Object
}, L runtime.Object](
	name string,
	list func(context.Context, metav1.ListOptions) (L, error),
	open func(context.Context, metav1.ListOptions) (watch.Interface, error),
	set func(*Observation, O),
) *stream {
	return &stream{
		name: name,
		list: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return list(ctx, options)
		},
		watch: open,
		wrap: func(object runtime.Object) (Observation, error) {
			typed, ok := object.(O)
			if !ok {
				return Observation{}, fmt.Errorf("got a %T among %s", object, name)
			}
			typed.SetManagedFields(nil)
			var o Observation
			set(&o, typed)
			return o, nil
		},
	}
}

// claimStream follows NodeClaims.
func claimStream(dyn dynamic.Interface) *stream {
	claims := dyn.Resource(NodeClaims)
	return &stream{
		name: "nodeclaims",
		list: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return claims.List(ctx, options)
		},
		watch: claims.Watch,
		wrap: func(object runtime.Object) (Observation, error) {
			u, ok := object.(*unstructured.Unstructured)
			if !ok {
				return Observation{}, fmt.Errorf("got a %T among nodeclaims", object)
			}
			claim, err := claimFrom(u)
			return Observation{Claim: claim}, err
		},
	}
}
