// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
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
	// decided has the decisions that the informer may not show yet.
	decided map[types.UID]decision
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
		decided:   map[types.UID]decision{},
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
	var running, arrived, unwritten []*corev1.Pod
	for _, obj := range objs {
		pod := obj.(*corev1.Pod)
		if isTerminal(pod) {
			continue
		}
		d, decided := k.decisionOn(pod)
		if !decided {
			if pod.DeletionTimestamp == nil {
				arrived = append(arrived, pod)
			}
			continue
		}
		if d.admitted() {
			running = append(running, pod)
		}
		if !d.written {
			unwritten = append(unwritten, pod)
		}
	}
	slices.SortFunc(arrived, byAge)
	for _, pod := range arrived {
		v := admit(node, running, pod)
		k.decide(pod, decision{verdict: v})
		if v.admitted() {
			running = append(running, pod)
		}
	}
	return k.writeAll(ctx, append(unwritten, arrived...))
}

// playedNode returns nil if the Node is not there, or has a kubelet of its own.
func (k *kubelets) playedNode(name string) *corev1.Node {
	node, err := k.nodes.Get(name) // fails only if it is not there
	if err != nil || node.Annotations[AnnotationNode] != "fake" {
		return nil
	}
	return node
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
