// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

const (
	// AnnotationNode, with value "fake", marks Nodes whose kubelet is played.
	AnnotationNode = "kwok.x-k8s.io/node"
	// AnnotationAdmitted, with value "true", marks pods that their kubelet
	// admitted. KWOK's stages act on no others.
	AnnotationAdmitted = "fake.jit-scheduler.io/admitted"
	// AnnotationRunFor on a pod is how long its containers run ("5s") before they
	// all exit with code 0. Without it they run until the pod is deleted.
	AnnotationRunFor = "fake.jit-scheduler.io/run-for"
	// AnnotationIgnoresSIGTERM on a pod, with any value, makes its containers use
	// all of their grace period. Without it they end at once.
	AnnotationIgnoresSIGTERM = "fake.jit-scheduler.io/ignores-sigterm"
)

const (
	podsByNode        = "node"
	admissionWorkers  = 8
	admissionDeadline = 10 * time.Second
)

// kubeletAdmission decides about each pod that is bound to a played Node, once.
// The pods of a node are decided one after the other, oldest first.
type kubeletAdmission struct {
	client    kubernetes.Interface
	informers informers.SharedInformerFactory
	nodes     corelisters.NodeLister
	pods      cache.Indexer
	synced    []cache.InformerSynced
	queue     workqueue.TypedRateLimitingInterface[string] // of node names

	mu sync.Mutex
	// decided has the verdicts that the informer may not show yet.
	decided map[types.UID]verdict
}

func newKubeletAdmission(client kubernetes.Interface) *kubeletAdmission {
	factory := informers.NewSharedInformerFactory(client, 0)
	nodes, pods := factory.Core().V1().Nodes(), factory.Core().V1().Pods().Informer()
	a := &kubeletAdmission{
		client:    client,
		informers: factory,
		nodes:     nodes.Lister(),
		pods:      pods.GetIndexer(),
		synced:    []cache.InformerSynced{nodes.Informer().HasSynced, pods.HasSynced},
		queue:     workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]()),
		decided:   map[types.UID]verdict{},
	}
	// Adding to an informer that was not started, and an index of a new name,
	// cannot fail.
	_ = pods.AddIndexers(cache.Indexers{podsByNode: func(obj any) ([]string, error) {
		return []string{obj.(*corev1.Pod).Spec.NodeName}, nil
	}})
	_, _ = pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { a.enqueue(obj.(*corev1.Pod)) },
		UpdateFunc: func(_, obj any) { a.enqueue(obj.(*corev1.Pod)) },
		DeleteFunc: a.forget,
	})
	_, _ = nodes.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { a.queue.Add(obj.(*corev1.Node).Name) },
	})
	return a
}

func (a *kubeletAdmission) enqueue(pod *corev1.Pod) {
	if pod.Spec.NodeName != "" && isUndecided(pod) {
		a.queue.Add(pod.Spec.NodeName)
	}
}

func (a *kubeletAdmission) forget(obj any) {
	if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = unknown.Obj
	}
	if pod, ok := obj.(*corev1.Pod); ok {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.decided, pod.UID)
	}
}

// run decides until ctx ends.
func (a *kubeletAdmission) run(ctx context.Context) {
	a.informers.Start(ctx.Done())
	defer a.informers.Shutdown()
	if !cache.WaitForCacheSync(ctx.Done(), a.synced...) {
		return
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	for range admissionWorkers {
		wg.Go(func() {
			for a.next(ctx) {
			}
		})
	}
	<-ctx.Done()
	a.queue.ShutDown()
}

// waitSynced returns when every pod and node is known.
func (a *kubeletAdmission) waitSynced(ctx context.Context) error {
	if !cache.WaitForCacheSync(ctx.Done(), a.synced...) {
		return fmt.Errorf("the kubelet admission did not see the cluster: %w", ctx.Err())
	}
	return nil
}

func (a *kubeletAdmission) next(ctx context.Context) bool {
	name, stopped := a.queue.Get()
	if stopped {
		return false
	}
	defer a.queue.Done(name)
	if err := a.admitPods(ctx, name); err != nil && ctx.Err() == nil {
		klog.FromContext(ctx).Error(err, "Admitting pods; will try again", "node", name)
		a.queue.AddRateLimited(name)
		return true
	}
	a.queue.Forget(name)
	return true
}

// admitPods decides about every pod of a node that is not decided yet.
func (a *kubeletAdmission) admitPods(ctx context.Context, nodeName string) error {
	node, err := a.nodes.Get(nodeName)
	if apierrors.IsNotFound(err) {
		return nil // there is no kubelet
	}
	if err != nil || node.Annotations[AnnotationNode] != "fake" {
		return err
	}
	objs, err := a.pods.ByIndex(podsByNode, nodeName)
	if err != nil {
		return err
	}
	var running, arrived []*corev1.Pod
	for _, obj := range objs {
		switch pod := obj.(*corev1.Pod); a.stateOf(pod) {
		case admitted:
			running = append(running, pod)
		case undecided:
			arrived = append(arrived, pod)
		}
	}
	slices.SortFunc(arrived, byAge)
	for _, pod := range arrived {
		v := admit(node, running, pod)
		if err := a.write(ctx, pod, v); err != nil {
			return fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
		if v.admitted() {
			running = append(running, pod)
		}
	}
	return nil
}

type podState int

const (
	undecided podState = iota
	admitted           // and takes up room
	over               // rejected or ended
)

func (a *kubeletAdmission) stateOf(pod *corev1.Pod) podState {
	if isTerminal(pod) {
		return over
	}
	if !isUndecided(pod) {
		return admitted
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	v, ok := a.decided[pod.UID]
	switch {
	case !ok && pod.DeletionTimestamp != nil:
		return over // was never started
	case !ok:
		return undecided
	case v.admitted():
		return admitted
	default:
		return over
	}
}

func isTerminal(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

func isUndecided(pod *corev1.Pod) bool {
	return !isTerminal(pod) && pod.Annotations[AnnotationAdmitted] != "true"
}

func byAge(a, b *corev1.Pod) int {
	if c := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); c != 0 {
		return c
	}
	if a.UID < b.UID {
		return -1
	}
	return 1
}

// write makes the verdict known: to KWOK if the pod may run, else to all.
func (a *kubeletAdmission) write(ctx context.Context, pod *corev1.Pod, v verdict) error {
	ctx, cancel := context.WithTimeout(ctx, admissionDeadline)
	defer cancel()
	// The UID makes a pod of the same name that came since a conflict.
	patch := map[string]any{"metadata": map[string]any{"uid": pod.UID}}
	var subresources []string
	if v.admitted() {
		patch["metadata"].(map[string]any)["annotations"] = map[string]string{AnnotationAdmitted: "true"}
	} else {
		subresources = []string{"status"}
		patch["status"] = map[string]any{
			"phase": corev1.PodFailed, "reason": v.reason, "message": "Pod was rejected: " + v.message,
			"startTime": metav1.Now(),
		}
		klog.FromContext(ctx).Info("Pod rejected as a kubelet would",
			"pod", klog.KObj(pod), "node", pod.Spec.NodeName, "reason", v.reason, "detail", v.message)
	}
	data, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	_, err = a.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, data,
		metav1.PatchOptions{}, subresources...)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // the pod has gone
	}
	if err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.decided[pod.UID] = v
	return nil
}
