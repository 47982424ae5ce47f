// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// View is what is true now, as far as the watches and the last poll of the fake
// tell. It is the caller's own copy; the objects in it must not be changed.
type View struct {
	Time            time.Time
	Pods            map[types.UID]*corev1.Pod
	Nodes           map[string]*corev1.Node
	Claims          map[string]*Claim
	Instances       []Instance // terminated ones included, oldest first
	LaunchTemplates []LaunchTemplate
	Calls           []Call // in order of arrival

	events []*corev1.Event
	prices map[string]float64
}

// View copies what is true at now.
func (s *State) View(now time.Time) *View {
	v := &View{
		Time:            now,
		Pods:            maps.Clone(s.live.pods),
		Nodes:           maps.Clone(s.live.nodes),
		Claims:          maps.Clone(s.live.claims),
		Instances:       s.instancesByLaunch(),
		LaunchTemplates: slices.Clone(s.launchTemplates),
		Calls:           slices.Clip(s.calls),
		prices:          s.prices,
	}
	for _, o := range s.live.events {
		v.events = append(v.events, o.Event)
	}
	return v
}

// PodSelector selects pods; an empty field selects all.
type PodSelector struct {
	Namespace     string
	SchedulerName string
	Labels        map[string]string
}

// Matches reports whether the pod is selected.
func (s PodSelector) Matches(pod *corev1.Pod) bool {
	if (s.Namespace != "" && s.Namespace != pod.Namespace) ||
		(s.SchedulerName != "" && s.SchedulerName != pod.Spec.SchedulerName) {
		return false
	}
	for key, value := range s.Labels {
		if got, ok := pod.Labels[key]; !ok || got != value {
			return false
		}
	}
	return true
}

// Select are the selected pods, by name.
func (v *View) Select(sel PodSelector) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, pod := range v.Pods {
		if sel.Matches(pod) {
			pods = append(pods, pod)
		}
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return cmp.Compare(podName(a), podName(b)) })
	return pods
}

// PodCounts says where the selected pods are.
type PodCounts struct {
	Total       int // those that exist
	Bound       int // have a node
	Nominated   int // have no node, but status.nominatedNodeName
	Ready       int
	Terminating int // have a deletion timestamp
}

// Count counts the selected pods.
func (v *View) Count(sel PodSelector) PodCounts {
	var n PodCounts
	for _, pod := range v.Pods {
		if !sel.Matches(pod) {
			continue
		}
		n.Total++
		if pod.Spec.NodeName != "" {
			n.Bound++
		} else if pod.Status.NominatedNodeName != "" {
			n.Nominated++
		}
		if c := podCondition(pod, corev1.PodReady); c != nil && c.Status == corev1.ConditionTrue {
			n.Ready++
		}
		if pod.DeletionTimestamp != nil {
			n.Terminating++
		}
	}
	return n
}

// ReadyNodes is how many nodes are Ready; provisioned only counts those of a NodePool.
func (v *View) ReadyNodes(provisioned bool) int {
	n := 0
	for _, node := range v.Nodes {
		if _, ofPool := node.Labels[labelNodePool]; ready(node) && (ofPool || !provisioned) {
			n++
		}
	}
	return n
}

// ProvisionedNodes is how many nodes carry a NodePool's label.
func (v *View) ProvisionedNodes() int {
	n := 0
	for _, node := range v.Nodes {
		if _, ok := node.Labels[labelNodePool]; ok {
			n++
		}
	}
	return n
}

// LiveInstances are the instances that are not terminated, oldest first.
func (v *View) LiveInstances() []Instance {
	return slices.DeleteFunc(slices.Clone(v.Instances), func(i Instance) bool { return i.Terminated() })
}

// NothingLeft reports whether there are no instances but terminated ones, no
// Nodes of a NodePool, no NodeClaims and no launch templates.
func (v *View) NothingLeft() bool {
	return len(v.LiveInstances()) == 0 && v.ProvisionedNodes() == 0 && len(v.Claims) == 0 && len(v.LaunchTemplates) == 0
}

// USDPerHour is what the instances that exist cost.
func (v *View) USDPerHour() float64 {
	sum := 0.0
	for _, instance := range v.Instances {
		if !instance.Terminated() {
			sum += price(&instance, v.prices)
		}
	}
	return sum
}

// Events are the events about the object of that kind and name, as "Reason: message", sorted.
func (v *View) Events(kind, namespace, name string) []string {
	var texts []string
	for _, e := range v.events {
		about := e.InvolvedObject
		if about.Kind == kind && about.Namespace == namespace && about.Name == name {
			texts = append(texts, e.Reason+": "+e.Message)
		}
	}
	slices.Sort(texts)
	return texts
}

// HasEvent reports whether an event about the object has that reason and
// contains all the parts in its message; an empty reason is any.
func (v *View) HasEvent(kind, namespace, name, reason string, parts ...string) bool {
	return slices.ContainsFunc(v.events, func(e *corev1.Event) bool {
		about := e.InvolvedObject
		if about.Kind != kind || about.Namespace != namespace || about.Name != name || (reason != "" && e.Reason != reason) {
			return false
		}
		for _, part := range parts {
			if !strings.Contains(e.Message, part) {
				return false
			}
		}
		return true
	})
}
