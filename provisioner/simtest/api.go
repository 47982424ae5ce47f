// SPDX-License-Identifier: Apache-2.0

package simtest

import (
	"strconv"

	v1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
)

// serve adds to the fake clientset what an API server does and the tracker does not: uids, resource versions,
// creation times, and the binding subresource.
func (c *Cluster) serve() {
	c.Client.PrependReactor("create", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		create, ok := action.(clienttesting.CreateAction)
		if !ok {
			return false, nil, nil
		}
		if b, ok := create.GetObject().(*v1.Binding); ok && action.GetSubresource() == "binding" {
			return true, b, c.bind(b)
		}
		if o, ok := create.GetObject().(metav1.Object); ok {
			n := c.next()
			if action.GetResource().Resource == "events" {
				// Recorders name events by the nanosecond, and time stands still here.
				o.SetName(o.GetName() + "." + strconv.Itoa(n))
			}
			if o.GetUID() == "" {
				o.SetUID(types.UID("uid-" + strconv.Itoa(n)))
			}
			if t := o.GetCreationTimestamp(); t.IsZero() {
				o.SetCreationTimestamp(metav1.Now())
			}
			o.SetResourceVersion(strconv.Itoa(n))
		}
		return false, nil, nil
	})
	c.Client.PrependReactor("update", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if update, ok := action.(clienttesting.UpdateAction); ok {
			if o, ok := update.GetObject().(metav1.Object); ok {
				o.SetResourceVersion(strconv.Itoa(c.next()))
			}
		}
		return false, nil, nil
	})
}

func (c *Cluster) next() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version++
	return c.version
}

func (c *Cluster) bind(b *v1.Binding) error {
	pods := v1.SchemeGroupVersion.WithResource("pods")
	obj, err := c.Client.Tracker().Get(pods, b.Namespace, b.Name)
	if err != nil {
		return err
	}
	pod := obj.(*v1.Pod).DeepCopy()
	pod.Spec.NodeName = b.Target.Name
	pod.Status.NominatedNodeName = ""
	pod.Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionTrue}}
	pod.ResourceVersion = strconv.Itoa(c.next())
	return c.Client.Tracker().Update(pods, pod, b.Namespace)
}

// CreatePod creates the pod; an empty schedulerName is the first profile's.
func (c *Cluster) CreatePod(pod *v1.Pod) *v1.Pod {
	c.T.Helper()
	if pod.Namespace == "" {
		pod.Namespace = "default"
	}
	if pod.Spec.SchedulerName == "" {
		pod.Spec.SchedulerName = c.Config.Profiles[0].SchedulerName
	}
	out, err := c.Client.CoreV1().Pods(pod.Namespace).Create(c.Ctx, pod, metav1.CreateOptions{})
	if err != nil {
		c.T.Fatal(err)
	}
	return out
}

// UpdatePod changes the pod as it is now.
func (c *Cluster) UpdatePod(name string, change func(*v1.Pod)) {
	c.T.Helper()
	pod := c.Pod(name).DeepCopy()
	change(pod)
	if _, err := c.Client.CoreV1().Pods("default").Update(c.Ctx, pod, metav1.UpdateOptions{}); err != nil {
		c.T.Fatal(err)
	}
}

// DeletePod deletes the pod at once.
func (c *Cluster) DeletePod(name string) {
	c.T.Helper()
	if err := c.Client.CoreV1().Pods("default").Delete(c.Ctx, name, metav1.DeleteOptions{}); err != nil {
		c.T.Fatal(err)
	}
}

// Pod is the pod of namespace default as the API server has it.
func (c *Cluster) Pod(name string) *v1.Pod {
	c.T.Helper()
	pod, err := c.Client.CoreV1().Pods("default").Get(c.Ctx, name, metav1.GetOptions{})
	if err != nil {
		c.T.Fatal(err)
	}
	return pod
}

// CreateNode creates the node.
func (c *Cluster) CreateNode(node *v1.Node) {
	c.T.Helper()
	if _, err := c.Client.CoreV1().Nodes().Create(c.Ctx, node, metav1.CreateOptions{}); err != nil {
		c.T.Fatal(err)
	}
}

// UpdateNode changes the node as it is now.
func (c *Cluster) UpdateNode(name string, change func(*v1.Node)) {
	c.T.Helper()
	node, err := c.Client.CoreV1().Nodes().Get(c.Ctx, name, metav1.GetOptions{})
	if err != nil {
		c.T.Fatal(err)
	}
	node = node.DeepCopy()
	change(node)
	if _, err := c.Client.CoreV1().Nodes().Update(c.Ctx, node, metav1.UpdateOptions{}); err != nil {
		c.T.Fatal(err)
	}
}

// Events are the events of the pod, oldest first.
func (c *Cluster) Events(pod string) []eventsv1.Event {
	c.T.Helper()
	list, err := c.Client.EventsV1().Events("default").List(c.Ctx, metav1.ListOptions{})
	if err != nil {
		c.T.Fatal(err)
	}
	var out []eventsv1.Event
	for _, e := range list.Items {
		if e.Regarding.Name == pod {
			out = append(out, e)
		}
	}
	return out
}
