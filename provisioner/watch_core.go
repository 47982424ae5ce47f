// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	corehelpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"

	"github.com/jit-scheduler/jit-scheduler/provisioner/lifecycle"
	"github.com/jit-scheduler/jit-scheduler/provisioner/scheduling"
)

// byNode indexes pods by spec.nodeName; byOwner by the UID of their controller.
const (
	byNode  = "node"
	byOwner = "owner"
)

// watchCore hooks into the scheduler's informers.
func (p *Provisioner) watchCore() error {
	p.pods = p.Informers.Core().V1().Pods().Informer()
	err := p.pods.AddIndexers(cache.Indexers{
		byNode: func(o any) ([]string, error) {
			return podIndex(o, func(pod *v1.Pod) string { return pod.Spec.NodeName })
		},
		byOwner: func(o any) ([]string, error) {
			return podIndex(o, func(pod *v1.Pod) string { return string(controllerUID(pod)) })
		},
	})
	if err != nil {
		return fmt.Errorf("indexing pods: %w", err)
	}
	p.Informers.Apps().V1().DaemonSets().Informer()
	p.Informers.Apps().V1().ReplicaSets().Informer()
	p.Informers.Core().V1().ResourceQuotas().Informer()
	for informer, handler := range map[cache.SharedIndexInformer]cache.ResourceEventHandlerFuncs{
		p.pods: {
			AddFunc:    p.podSeen,
			UpdateFunc: func(_, o any) { p.podSeen(o) },
			DeleteFunc: p.podGone,
		},
		p.Informers.Core().V1().Nodes().Informer(): {
			AddFunc:    p.nodeSeen,
			UpdateFunc: p.nodeChanged,
			DeleteFunc: p.nodeGone,
		},
		p.Informers.Apps().V1().DaemonSets().Informer(): {
			AddFunc:    func(any) { p.changed() },
			UpdateFunc: p.daemonSetChanged,
			DeleteFunc: func(any) { p.changed() },
		},
	} {
		if _, err := informer.AddEventHandler(handler); err != nil {
			return fmt.Errorf("watching: %w", err)
		}
	}
	return nil
}

// daemonSetChanged leaves status writes alone: only what its pods are can change what fits.
func (p *Provisioner) daemonSetChanged(o, n any) {
	was, ok1 := o.(*appsv1.DaemonSet)
	now, ok2 := n.(*appsv1.DaemonSet)
	if ok1 && ok2 && !equality.Semantic.DeepEqual(was.Spec.Template, now.Spec.Template) {
		p.changed()
	}
}

func (p *Provisioner) nodesSynced() cache.InformerSynced {
	return p.Informers.Core().V1().Nodes().Informer().HasSynced
}

func (p *Provisioner) daemonSetsSynced() cache.InformerSynced {
	return p.Informers.Apps().V1().DaemonSets().Informer().HasSynced
}

func podIndex(o any, key func(*v1.Pod) string) ([]string, error) {
	if pod, ok := o.(*v1.Pod); ok {
		if k := key(pod); k != "" {
			return []string{k}, nil
		}
	}
	return nil, nil
}

// podsOf lists pods by index, from memory.
func (p *Provisioner) podsOf(index, value string) []*v1.Pod {
	objs, err := p.pods.GetIndexer().ByIndex(index, value)
	if err != nil {
		return nil // only for an index that does not exist
	}
	pods := make([]*v1.Pod, 0, len(objs))
	for _, o := range objs {
		pods = append(pods, o.(*v1.Pod))
	}
	return pods
}

func (p *Provisioner) podSeen(o any) {
	ev, ok := podEvent(o)
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if ev.Node != "" || ev.Terminal {
		delete(p.waiting, ev.UID)
		p.hints.forget(ev.UID)
	}
	if ev.Node != "" && ev.Terminal {
		p.roomFreed()
	}
	p.applyLocked(ev)
}

func (p *Provisioner) podGone(o any) {
	pod, ok := deleted[*v1.Pod](o)
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.waiting, pod.UID)
	p.hints.forget(pod.UID)
	if claim, _ := p.state.Reservation(pod.UID); claim != "" {
		p.changedLocked() // room on a claim that is on its way
		if p.sched != nil {
			p.sched.Drop(pod.UID)
		}
	}
	if pod.Spec.NodeName != "" {
		p.roomFreed()
	}
	p.applyLocked(lifecycle.PodGone{UID: pod.UID})
}

// nodeSeenWait bounds how long a Node event waits for the scheduler's cache.
const nodeSeenWait = time.Second

// afterCache returns when the scheduler's cache knows the Node as well: a pod that is handed over before that would
// fail on what its machine was a moment ago, and buy another one. Informer handlers may block, each for itself.
func (p *Provisioner) afterCache(node *v1.Node) {
	for end := time.Now().Add(nodeSeenWait); p.sched != nil && !p.sched.Saw(node) && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
}

func (p *Provisioner) nodeSeen(o any) {
	if node, ok := o.(*v1.Node); ok {
		p.afterCache(node)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.nodeSeenLocked(node)
		p.roomFreed()
	}
}

// nodeSeenLocked passes a Node on once it is known which are ours; rebuild passes on all that came before.
func (p *Provisioner) nodeSeenLocked(node *v1.Node) {
	if p.synced && !p.isForeign(node) {
		p.learn(node)
		p.applyLocked(lifecycle.NodeSeen{Node: node})
	}
}

// isForeign is true for nodes of NodeClaims that are not ours; mu is held.
func (p *Provisioner) isForeign(node *v1.Node) bool {
	_, ok := p.foreign[node.Spec.ProviderID]
	return ok
}

// nodeChanged leaves heartbeats alone: most updates of a node change nothing that a pod could look at.
func (p *Provisioner) nodeChanged(o, n any) {
	was, ok1 := o.(*v1.Node)
	node, ok2 := n.(*v1.Node)
	if !ok1 || !ok2 {
		return
	}
	p.afterCache(node)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.nodeSeenLocked(node)
	if !equality.Semantic.DeepEqual(was.Spec, node.Spec) || !equality.Semantic.DeepEqual(was.Labels, node.Labels) ||
		!equality.Semantic.DeepEqual(was.Status.Allocatable, node.Status.Allocatable) {
		p.roomFreed()
	}
}

func (p *Provisioner) nodeGone(o any) {
	if node, ok := deleted[*v1.Node](o); ok {
		p.apply(lifecycle.NodeGone{Name: node.Name})
	}
}

// changed says that a refusal may turn into a purchase.
func (p *Provisioner) changed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.changedLocked()
}

func (p *Provisioner) changedLocked() {
	p.epoch++
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// deleted unwraps an informer's delete notification.
func deleted[T any](o any) (T, bool) {
	if tomb, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = tomb.Obj
	}
	t, ok := o.(T)
	return t, ok
}

// podEvent is what the state needs of a pod; false for pods that are nobody's business (not ours and not bound).
func podEvent(o any) (lifecycle.PodSeen, bool) {
	pod, ok := o.(*v1.Pod)
	if !ok {
		return lifecycle.PodSeen{}, false
	}
	return lifecycle.PodSeen{
		Pod:         ledgerPod(pod),
		Node:        pod.Spec.NodeName,
		DaemonSet:   isDaemon(pod),
		StatefulSet: controlledBy(pod, "StatefulSet"),
		Evicted:     evicted(pod),
		Terminal:    pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed,
		Terminating: pod.DeletionTimestamp != nil,
	}, true
}

// notReadyNoExecute is what the node lifecycle controller puts on nodes that are not ready; admission makes nearly all
// pods tolerate it for some minutes.
var notReadyNoExecute = v1.Taint{Key: v1.TaintNodeNotReady, Effect: v1.TaintEffectNoExecute}

func ledgerPod(pod *v1.Pod) lifecycle.Pod {
	return lifecycle.Pod{
		UID: pod.UID, Namespace: pod.Namespace, Name: pod.Name, Requests: scheduling.Requests(pod),
		ToleratesNotReady: corehelpers.TolerationsTolerateTaint(klog.Background(), pod.Spec.Tolerations, &notReadyNoExecute, true),
	}
}

// isDaemon is true for pods that come with the node: DaemonSet and mirror pods.
func isDaemon(pod *v1.Pod) bool {
	if _, mirror := pod.Annotations[v1.MirrorPodAnnotationKey]; mirror {
		return true
	}
	return controlledBy(pod, "DaemonSet")
}

func controlledBy(pod *v1.Pod, kind string) bool {
	ref := metav1.GetControllerOfNoCopy(pod)
	return ref != nil && ref.Kind == kind
}

func controllerUID(pod *v1.Pod) types.UID {
	if ref := metav1.GetControllerOfNoCopy(pod); ref != nil {
		return ref.UID
	}
	return ""
}

// evicted is true for a pod that somebody drains.
func evicted(pod *v1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c v1.PodCondition) bool {
		return c.Type == v1.DisruptionTarget && c.Status == v1.ConditionTrue
	})
}
