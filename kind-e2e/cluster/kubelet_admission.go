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
	podsByNode      = "node"
	kubeletWorkers  = 8
	kubeletDeadline = 10 * time.Second
)

// kubelets is what a kubelet does and KWOK does not, or not well: it admits pods
// (this file), and removes them when they are deleted (kubelet_removal.go). It
// decides about each pod that is bound to a played Node, once; the pods of a node
// one after the other, oldest first.
type kubelets struct {
	client    kubernetes.Interface
	informers informers.SharedInformerFactory
	nodes     corelisters.NodeLister
	pods      cache.Indexer
	synced    []cache.InformerSynced
	arrivals  workqueue.TypedRateLimitingInterface[string] // of node names
	removals  workqueue.TypedRateLimitingInterface[podKey]

	mu sync.Mutex
	// decided has the verdicts that the informer may not show yet.
	decided map[types.UID]verdict
}

func newKubelets(client kubernetes.Interface) *kubelets {
	factory := informers.NewSharedInformerFactory(client, 0)
	nodes, pods := factory.Core().V1().Nodes(), factory.Core().V1().Pods().Informer()
	k := &kubelets{
		client:    client,
		informers: factory,
		nodes:     nodes.Lister(),
		pods:      pods.GetIndexer(),
		synced:    []cache.InformerSynced{nodes.Informer().HasSynced, pods.HasSynced},
		arrivals:  workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]()),
		removals:  workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[podKey]()),
		decided:   map[types.UID]verdict{},
	}
	// Adding to an informer that was not started, and an index of a new name,
	// cannot fail.
	_ = pods.AddIndexers(cache.Indexers{podsByNode: func(obj any) ([]string, error) {
		return []string{obj.(*corev1.Pod).Spec.NodeName}, nil
	}})
	_, _ = pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { k.enqueue(obj.(*corev1.Pod)) },
		UpdateFunc: func(_, obj any) { k.enqueue(obj.(*corev1.Pod)) },
		DeleteFunc: k.forget,
	})
	_, _ = nodes.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { k.arrivals.Add(obj.(*corev1.Node).Name) },
	})
	return k
}

func (k *kubelets) enqueue(pod *corev1.Pod) {
	if pod.Spec.NodeName == "" {
		return
	}
	if pod.DeletionTimestamp != nil {
		k.removals.AddAfter(keyOf(pod), time.Until(removeAt(pod)))
	} else if isUndecided(pod) {
		k.arrivals.Add(pod.Spec.NodeName)
	}
}

func (k *kubelets) forget(obj any) {
	if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = unknown.Obj
	}
	if pod, ok := obj.(*corev1.Pod); ok {
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.decided, pod.UID)
	}
}

// run decides until ctx ends.
func (k *kubelets) run(ctx context.Context) {
	k.informers.Start(ctx.Done())
	defer k.informers.Shutdown()
	if !cache.WaitForCacheSync(ctx.Done(), k.synced...) {
		return
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	for range kubeletWorkers {
		wg.Go(func() {
			for next(ctx, k.arrivals, k.admitPods) {
			}
		})
		wg.Go(func() {
			for next(ctx, k.removals, k.removePod) {
			}
		})
	}
	<-ctx.Done()
	k.arrivals.ShutDown()
	k.removals.ShutDown()
}

// waitSynced returns when every pod and node is known.
func (k *kubelets) waitSynced(ctx context.Context) error {
	if !cache.WaitForCacheSync(ctx.Done(), k.synced...) {
		return fmt.Errorf("the played kubelets did not see the cluster: %w", ctx.Err())
	}
	return nil
}

// next does one thing that is queued, and reports whether more may come.
func next[K comparable](ctx context.Context, queue workqueue.TypedRateLimitingInterface[K], do func(context.Context, K) error) bool {
	key, stopped := queue.Get()
	if stopped {
		return false
	}
	defer queue.Done(key)
	if err := do(ctx, key); err != nil && ctx.Err() == nil {
		klog.FromContext(ctx).Error(err, "A played kubelet failed; will try again", "key", key)
		queue.AddRateLimited(key)
		return true
	}
	queue.Forget(key)
	return true
}

// admitPods decides about every pod of a node that is not decided yet.
func (k *kubelets) admitPods(ctx context.Context, nodeName string) error {
	node := k.playedNode(nodeName)
	if node == nil {
		return nil
	}
	objs, err := k.pods.ByIndex(podsByNode, nodeName)
	if err != nil {
		return err
	}
	var running, arrived []*corev1.Pod
	for _, obj := range objs {
		switch pod := obj.(*corev1.Pod); k.stateOf(pod) {
		case admitted:
			running = append(running, pod)
		case undecided:
			arrived = append(arrived, pod)
		}
	}
	slices.SortFunc(arrived, byAge)
	for _, pod := range arrived {
		v := admit(node, running, pod)
		if err := k.write(ctx, pod, v); err != nil {
			return fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
		if v.admitted() {
			running = append(running, pod)
		}
	}
	return nil
}

// playedNode returns nil if the Node is not there, or has a kubelet of its own.
func (k *kubelets) playedNode(name string) *corev1.Node {
	node, err := k.nodes.Get(name) // fails only if it is not there
	if err != nil || node.Annotations[AnnotationNode] != "fake" {
		return nil
	}
	return node
}

type podState int

const (
	undecided podState = iota
	admitted           // and takes up room
	over               // rejected or ended
)

func (k *kubelets) stateOf(pod *corev1.Pod) podState {
	if isTerminal(pod) {
		return over
	}
	if !isUndecided(pod) {
		return admitted
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	v, ok := k.decided[pod.UID]
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
func (k *kubelets) write(ctx context.Context, pod *corev1.Pod, v verdict) error {
	ctx, cancel := context.WithTimeout(ctx, kubeletDeadline)
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
	_, err = k.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, data,
		metav1.PatchOptions{}, subresources...)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // the pod has gone
	}
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.decided[pod.UID] = v
	return nil
}
