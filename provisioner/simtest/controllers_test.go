// SPDX-License-Identifier: Apache-2.0

package simtest

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/retry"
	resourcehelper "k8s.io/component-helpers/resource"
	corehelpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
)

// The delays of kube-controller-manager, as far as anybody can notice.
const (
	cordonTaintDelay = 20 * time.Millisecond
	collectDelay     = 50 * time.Millisecond
	podCreateDelay   = 10 * time.Millisecond
	volumeDelay      = 200 * time.Millisecond
)

// wrote starts what controllers do about a change.
func (w *world) wrote(gvr schema.GroupVersionResource, obj metav1.Object) {
	switch o := obj.(type) {
	case *v1.Node:
		if hasCordonTaint(o) != o.Spec.Unschedulable {
			w.later(cordonTaintDelay, func() { w.syncCordonTaint(o.Name) })
		}
		w.later(collectDelay, func() { w.syncDaemons(o.Name) })
	case *v1.PersistentVolumeClaim:
		if node := o.Annotations[selectedNode]; node != "" && o.Spec.VolumeName == "" {
			w.later(volumeDelay, func() { w.provisionVolume(o.Name, node) })
		}
	}
}

// removed starts what controllers do about an object that is gone.
func (w *world) removed(gvr schema.GroupVersionResource, obj metav1.Object) {
	switch o := obj.(type) {
	case *v1.Pod:
		w.wakePlayers()
		return
	case *v1.Node:
		w.later(collectDelay, func() { w.collectPods(o.Name) })
		return
	}
	uid := obj.GetUID()
	w.later(collectDelay, func() {
		for _, claim := range w.list(nodeClaims) {
			if ownedBy(&claim, uid) {
				_ = w.custom(nodeClaims).Delete(w.ctx, claim.GetName(), metav1.DeleteOptions{})
			}
		}
		nodes, err := w.api().CoreV1().Nodes().List(w.ctx, metav1.ListOptions{})
		if err != nil {
			return
		}
		for _, node := range nodes.Items {
			if ownedBy(&node, uid) {
				_ = w.api().CoreV1().Nodes().Delete(w.ctx, node.Name, metav1.DeleteOptions{})
			}
		}
	})
}

// collectPods is pod GC: pods of a node that is gone are deleted.
func (w *world) collectPods(node string) {
	if _, err := w.api().CoreV1().Nodes().Get(w.ctx, node, metav1.GetOptions{}); err == nil {
		return
	}
	for _, pod := range w.pods("") {
		if pod.Spec.NodeName == node {
			_ = w.api().CoreV1().Pods(pod.Namespace).Delete(w.ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
		}
	}
}

// stopped deletes a pod that its kubelet has stopped.
func (w *world) stopped(after time.Duration, pod metav1.Object) {
	name, ns, uid := pod.GetName(), pod.GetNamespace(), pod.GetUID()
	w.later(after, func() {
		_ = w.api().CoreV1().Pods(ns).Delete(w.ctx, name, metav1.DeleteOptions{GracePeriodSeconds: new(int64), Preconditions: &metav1.Preconditions{UID: &uid}})
	})
}

func hasCordonTaint(n *v1.Node) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(t v1.Taint) bool { return t.Key == v1.TaintNodeUnschedulable })
}

// syncCordonTaint is the node lifecycle controller: a cordon is also a taint.
func (w *world) syncCordonTaint(name string) {
	_ = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		node, err := w.api().CoreV1().Nodes().Get(w.ctx, name, metav1.GetOptions{})
		if err != nil || hasCordonTaint(node) == node.Spec.Unschedulable {
			return nil
		}
		node = node.DeepCopy()
		node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t v1.Taint) bool { return t.Key == v1.TaintNodeUnschedulable })
		if node.Spec.Unschedulable {
			node.Spec.Taints = append(node.Spec.Taints, v1.Taint{Key: v1.TaintNodeUnschedulable, Effect: v1.TaintEffectNoSchedule})
		}
		_, err = w.api().CoreV1().Nodes().Update(w.ctx, node, metav1.UpdateOptions{})
		return err
	})
}

// syncDaemons is the DaemonSet controller with the default scheduler: every node that a DaemonSet tolerates gets its
// pod, cordoned or not.
func (w *world) syncDaemons(name string) {
	node, err := w.api().CoreV1().Nodes().Get(w.ctx, name, metav1.GetOptions{})
	if err != nil {
		return
	}
	sets, err := w.api().AppsV1().DaemonSets("default").List(w.ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	for i := range sets.Items {
		ds := &sets.Items[i]
		pod := daemonPod(ds, name)
		blocked := slices.ContainsFunc(node.Spec.Taints, func(t v1.Taint) bool {
			return t.Effect != v1.TaintEffectPreferNoSchedule && !corehelpers.TolerationsTolerateTaint(klog.Background(), pod.Spec.Tolerations, &t, false)
		})
		if !blocked {
			_, _ = w.api().CoreV1().Pods("default").Create(w.ctx, pod, metav1.CreateOptions{})
		}
	}
}

func daemonPod(ds *appsv1.DaemonSet, node string) *v1.Pod {
	pod := &v1.Pod{ObjectMeta: *ds.Spec.Template.ObjectMeta.DeepCopy(), Spec: *ds.Spec.Template.Spec.DeepCopy()}
	pod.Name = ds.Name + "-on-" + node
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: ds.Name, UID: ds.UID, Controller: new(true)}}
	pod.Spec.NodeName, pod.Spec.SchedulerName = node, v1.DefaultSchedulerName
	for _, key := range []string{v1.TaintNodeNotReady, v1.TaintNodeUnschedulable, v1.TaintNodeDiskPressure, v1.TaintNodeMemoryPressure} {
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, v1.Toleration{Key: key, Operator: v1.TolerationOpExists})
	}
	for i := range pod.Spec.Containers { // as the API server defaults it
		r := &pod.Spec.Containers[i].Resources
		if r.Requests == nil {
			r.Requests = v1.ResourceList{}
		}
		for name, q := range r.Limits {
			if _, ok := r.Requests[name]; !ok {
				r.Requests[name] = q
			}
		}
	}
	return pod
}

const selectedNode = "volume.kubernetes.io/selected-node"

// provisionVolume is a CSI driver with WaitForFirstConsumer: a volume in the zone of the node.
func (w *world) provisionVolume(claim, nodeName string) {
	node, err := w.api().CoreV1().Nodes().Get(w.ctx, nodeName, metav1.GetOptions{})
	if err != nil {
		w.violate("%s of volume claim %s names %s, which is no node", selectedNode, claim, nodeName)
		return
	}
	pvc, err := w.api().CoreV1().PersistentVolumeClaims("default").Get(w.ctx, claim, metav1.GetOptions{})
	if err != nil || pvc.Spec.VolumeName != "" {
		return
	}
	pv := &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pv-" + claim},
		Spec: v1.PersistentVolumeSpec{
			StorageClassName: *pvc.Spec.StorageClassName, Capacity: pvc.Spec.Resources.Requests, AccessModes: pvc.Spec.AccessModes,
			ClaimRef:               &v1.ObjectReference{Namespace: pvc.Namespace, Name: pvc.Name, UID: pvc.UID},
			PersistentVolumeSource: v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: "ebs.csi.aws.com", VolumeHandle: "vol-" + claim}},
			NodeAffinity: &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
				MatchExpressions: []v1.NodeSelectorRequirement{{Key: v1.LabelTopologyZone, Operator: v1.NodeSelectorOpIn, Values: []string{node.Labels[v1.LabelTopologyZone]}}},
			}}}},
		},
	}
	if _, err := w.api().CoreV1().PersistentVolumes().Create(w.ctx, pv, metav1.CreateOptions{}); err != nil {
		return
	}
	pvc = pvc.DeepCopy()
	pvc.Spec.VolumeName = pv.Name
	pvc.Annotations["pv.kubernetes.io/bind-completed"] = "yes"
	if pvc, err = w.api().CoreV1().PersistentVolumeClaims("default").Update(w.ctx, pvc, metav1.UpdateOptions{}); err == nil {
		pvc = pvc.DeepCopy()
		pvc.Status.Phase = v1.ClaimBound
		_, _ = w.api().CoreV1().PersistentVolumeClaims("default").UpdateStatus(w.ctx, pvc, metav1.UpdateOptions{})
	}
}

// binding checks, when a pod is bound, what a kubelet and everybody else relies on. It runs under the client's lock
// and reads the tracker only.
func (w *world) binding(pod *v1.Pod, nodeName string) {
	obj, err := w.first.Client.Tracker().Get(v1.SchemeGroupVersion.WithResource("nodes"), "", nodeName)
	if err != nil {
		w.violate("pod %s is bound to %s, which is no node", pod.Name, nodeName)
		return
	}
	node := obj.(*v1.Node)
	if !slices.ContainsFunc(node.Status.Conditions, func(c v1.NodeCondition) bool { return c.Type == v1.NodeReady && c.Status == v1.ConditionTrue }) {
		w.violate("pod %s is bound to %s, which is not ready", pod.Name, nodeName)
	}
	list, err := w.first.Client.Tracker().List(v1.SchemeGroupVersion.WithResource("pods"), v1.SchemeGroupVersion.WithKind("Pod"), "")
	if err != nil {
		w.violate("listing pods: %v", err)
		return
	}
	used := v1.ResourceList{v1.ResourcePods: resource.MustParse("1")}
	add(used, pod)
	for _, p := range list.(*v1.PodList).Items {
		if p.Spec.NodeName == nodeName && p.Status.Phase != v1.PodSucceeded && p.Status.Phase != v1.PodFailed {
			add(used, &p)
			used[v1.ResourcePods] = *resource.NewQuantity(used.Pods().Value()+1, resource.DecimalSI)
		}
	}
	for name, q := range used {
		if have := node.Status.Allocatable[name]; q.Cmp(have) > 0 {
			w.violate("binding %s: node %s has %s %s and its pods request %s", pod.Name, nodeName, have.String(), name, q.String())
		}
	}
}

// add adds what the pod requests, as kubelets count it.
func add(sum v1.ResourceList, pod *v1.Pod) {
	for name, q := range resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{}) {
		total := sum[name]
		total.Add(q)
		sum[name] = total
	}
}

// player is a ReplicaSet with its controller.
type player struct {
	world    *world
	name     string
	template v1.PodSpec
	labels   map[string]string
	wake     chan struct{}

	mu     sync.Mutex
	want   int
	serial int
	owner  metav1.OwnerReference
}

// replicaSet creates a ReplicaSet or scales it.
func (w *world) replicaSet(name string, replicas int, template *v1.Pod) error {
	p := w.players[name]
	sets := w.api().AppsV1().ReplicaSets("default")
	n := int32(replicas)
	if p != nil {
		rs, err := sets.Get(w.ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		rs = rs.DeepCopy()
		rs.Spec.Replicas = &n
		if _, err := sets.Update(w.ctx, rs, metav1.UpdateOptions{}); err != nil {
			return err
		}
	} else {
		rs, err := sets.Create(w.ctx, &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.ReplicaSetSpec{
			Replicas: &n, Selector: &metav1.LabelSelector{MatchLabels: template.Labels},
			Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: template.Labels}, Spec: template.Spec},
		}}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		p = &player{world: w, name: name, template: template.Spec, labels: template.Labels, wake: make(chan struct{}, 1)}
		p.owner = metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: name, UID: rs.UID, Controller: new(true), BlockOwnerDeletion: new(true)}
		w.mu.Lock()
		w.players[name] = p
		w.mu.Unlock()
		w.running.Go(p.run)
	}
	p.mu.Lock()
	p.want = replicas
	p.mu.Unlock()
	p.poke()
	return nil
}

func (w *world) wakePlayers() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.players {
		p.poke()
	}
}

func (p *player) poke() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// run keeps the number of pods; new ones come in batches of 1, 2, 4, … as from the real controller.
func (p *player) run() {
	for {
		select {
		case <-p.world.ctx.Done():
			return
		case <-p.wake:
		}
		for batch := 1; ; batch *= 2 {
			select {
			case <-p.world.ctx.Done():
				return
			case <-time.After(podCreateDelay):
			}
			if !p.step(batch) {
				break
			}
		}
	}
}

// step creates at most batch pods, or deletes all that are too many; false: nothing was to do.
func (p *player) step(batch int) bool {
	w := p.world
	p.mu.Lock()
	want := p.want
	p.mu.Unlock()
	have := slices.DeleteFunc(w.pods(p.name), func(pod v1.Pod) bool { return pod.DeletionTimestamp != nil || !ownedBy(&pod, p.owner.UID) })
	if len(have) > want {
		// Unbound ones first, then the youngest.
		slices.SortFunc(have, func(a, b v1.Pod) int {
			if (a.Spec.NodeName == "") != (b.Spec.NodeName == "") {
				return map[bool]int{true: -1, false: 1}[a.Spec.NodeName == ""]
			}
			return number(b.ResourceVersion) - number(a.ResourceVersion)
		})
		for _, pod := range have[:len(have)-want] {
			_ = w.api().CoreV1().Pods("default").Delete(w.ctx, pod.Name, metav1.DeleteOptions{})
		}
		return false
	}
	for range min(batch, want-len(have)) {
		p.serial++
		pod := &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("%s-%d", p.name, p.serial), Labels: p.labels, OwnerReferences: []metav1.OwnerReference{p.owner}},
			Spec:       *p.template.DeepCopy(),
		}
		if _, err := w.api().CoreV1().Pods("default").Create(w.ctx, pod, metav1.CreateOptions{}); err != nil {
			w.violate("creating pod %s: %v", pod.Name, err)
			return false
		}
	}
	return len(have) < want
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}
