// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
)

// machine is an instance of the model cloud.
type machine struct {
	cloudprovider.Instance
	group  string
	broken bool // never joins
	joined bool
	small  bool
}

// world is a model API server and cloud: what outlives the process. It behaves; it knows no script.
type world struct {
	now      time.Time
	seq      int
	claims   map[string]*karpv1.NodeClaim
	nodes    map[string]*v1.Node
	pods     map[types.UID]string // node, "" while pending
	machines map[string]*machine  // by provider id
	tokens   map[string][]string  // token → provider ids
	sizes    map[string]int       // token → count asked for
	// told are the facts that an informer has yet to tell, one queue per kind of object.
	told map[string][]Event
}

func newWorld() *world {
	return &world{
		now:    time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		claims: map[string]*karpv1.NodeClaim{}, nodes: map[string]*v1.Node{}, pods: map[types.UID]string{},
		machines: map[string]*machine{}, tokens: map[string][]string{}, sizes: map[string]int{}, told: map[string][]Event{},
	}
}

func (w *world) name(prefix string) string {
	w.seq++
	return prefix + strconv.Itoa(w.seq)
}

func (w *world) putClaim(c *karpv1.NodeClaim) {
	if c.DeletionTimestamp != nil && len(c.Finalizers) == 0 {
		delete(w.claims, c.Name)
		w.told["claim"] = append(w.told["claim"], ClaimGone{Name: c.Name})
		return
	}
	w.claims[c.Name] = c
	w.told["claim"] = append(w.told["claim"], ClaimSeen{Claim: c})
}

func (w *world) putNode(n *v1.Node) {
	if n.DeletionTimestamp != nil && len(n.Finalizers) == 0 {
		delete(w.nodes, n.Name)
		w.told["node"] = append(w.told["node"], NodeGone{Name: n.Name})
		for _, uid := range w.podsOn(n.Name) {
			w.replacePod(uid)
		}
		return
	}
	w.nodes[n.Name] = n
	w.told["node"] = append(w.told["node"], NodeSeen{Node: n})
}

func (w *world) podsOn(node string) []types.UID {
	var out []types.UID
	for _, uid := range slices.Sorted(maps.Keys(w.pods)) {
		if w.pods[uid] == node {
			out = append(out, uid)
		}
	}
	return out
}

func (w *world) bind(uid types.UID, node string) {
	w.pods[uid] = node
	w.told["pod"] = append(w.told["pod"], PodSeen{Pod: testPod(string(uid)), Node: node})
}

func (w *world) deletePod(uid types.UID) {
	delete(w.pods, uid)
	w.told["pod"] = append(w.told["pod"], PodGone{UID: uid})
}

// replacePod is what a ReplicaSet does about an evicted pod.
func (w *world) replacePod(uid types.UID) {
	w.deletePod(uid)
	w.pods[types.UID(w.name("p"))] = ""
}

// launch is CreateFleet with a token: equal requests give equal answers.
func (w *world) launch(a Launch, short, broken bool) Event {
	token := a.Group + "/" + strconv.Itoa(a.Attempt)
	if size, ok := w.sizes[token]; ok && size != len(a.Claims) {
		return LaunchFailed{Group: a.Group, Attempt: a.Attempt, Failure: cloudprovider.TokenMismatch}
	} else if !ok {
		w.sizes[token] = len(a.Claims)
		for i := range a.Claims {
			if short && i == len(a.Claims)-1 {
				break
			}
			o := a.Options[0]
			id := w.name("i-")
			m := &machine{group: a.Group, broken: broken, Instance: cloudprovider.Instance{
				ID: id, ProviderID: "aws:///" + id, InstanceType: o.InstanceType.Name, Zone: o.Offering.Zone,
				CapacityType: o.Offering.CapacityType, State: "running", Tags: map[string]string{},
			}}
			if len(a.Claims) == 1 {
				m.Tags[claimTag] = a.Claims[0].Name
			}
			w.machines[m.ProviderID] = m
			w.tokens[token] = append(w.tokens[token], m.ProviderID)
		}
	}
	var failures []cloudprovider.OfferingFailure
	if len(w.tokens[token]) < len(a.Claims) {
		o := a.Options[0]
		failures = []cloudprovider.OfferingFailure{{InstanceType: o.InstanceType.Name, Zone: o.Offering.Zone, CapacityType: o.Offering.CapacityType}}
	}
	if len(w.tokens[token]) == 0 {
		return LaunchFailed{Group: a.Group, Attempt: a.Attempt, Failure: cloudprovider.InsufficientCapacity, Failures: failures}
	}
	return Launched{Group: a.Group, Attempt: a.Attempt, Failures: failures, Instances: w.instances(w.tokens[token])}
}

func (w *world) instances(ids []string) []cloudprovider.Instance {
	var out []cloudprovider.Instance
	for _, id := range ids {
		inst := w.machines[id].Instance
		inst.Tags = maps.Clone(inst.Tags)
		out = append(out, inst)
	}
	return out
}

// do carries an action out and returns its answer.
func (w *world) do(a Action, short, broken bool) Event {
	switch a := a.(type) {
	case CreateClaim:
		if w.claims[a.Object.Name] == nil {
			c := a.Object.DeepCopy()
			c.UID = types.UID(w.name("uid"))
			w.putClaim(c)
		}
		return ClaimSeen{Claim: w.claims[a.Object.Name]}
	case Launch:
		return w.launch(a, short, broken)
	case FindInstances:
		var ids []string
		for _, id := range slices.Sorted(maps.Keys(w.machines)) {
			if w.machines[id].group == a.Group {
				ids = append(ids, id)
			}
		}
		return Found{Group: a.Group, Instances: w.instances(ids)}
	case TagInstance:
		m := w.machines[a.ProviderID]
		if m.State == "terminated" {
			return Failed{Key: a.Key(), Gone: true}
		}
		m.Tags[claimTag] = a.Claim
	case Terminate:
		if m := w.machines[a.ProviderID]; m.State == "terminated" {
			return Failed{Key: a.Key(), Gone: true}
		}
		w.machines[a.ProviderID].State = "terminated"
	case AwaitTermination:
		if m := w.machines[a.ProviderID]; m.State == "terminated" {
			return InstanceGone{ProviderID: a.ProviderID}
		}
		return Failed{Key: a.Key()}
	case PatchClaim, DeleteClaim, RemoveClaimFinalizer:
		return w.doClaim(a)
	default:
		return w.doNode(a)
	}
	return Done{Key: a.Key()}
}

func (w *world) doClaim(a Action) Event {
	edit := func(name string, f func(c *karpv1.NodeClaim)) Event {
		c := w.claims[name]
		if c == nil {
			return Failed{Key: a.Key(), Gone: true}
		}
		c = c.DeepCopy()
		f(c)
		w.putClaim(c)
		return Done{Key: a.Key()}
	}
	switch a := a.(type) {
	case PatchClaim:
		return edit(a.Claim.Name, func(c *karpv1.NodeClaim) {
			c.Labels, c.Annotations, c.Status = a.Claim.Labels, a.Claim.Annotations, *a.Claim.Status.DeepCopy()
		})
	case DeleteClaim:
		return edit(a.Name, func(c *karpv1.NodeClaim) {
			if c.DeletionTimestamp == nil {
				at := metav1.NewTime(w.now)
				c.DeletionTimestamp = &at
			}
		})
	case RemoveClaimFinalizer:
		return edit(a.Name, func(c *karpv1.NodeClaim) { c.Finalizers = nil })
	}
	panic(fmt.Sprintf("%T", a))
}

func (w *world) doNode(a Action) Event {
	edit := func(name string, f func(n *v1.Node)) Event {
		n := w.nodes[name]
		if n == nil {
			return Failed{Key: a.Key(), Gone: true}
		}
		n = n.DeepCopy()
		f(n)
		w.putNode(n)
		return Done{Key: a.Key()}
	}
	switch a := a.(type) {
	case RegisterNode:
		return edit(a.Node, func(n *v1.Node) { *n = *registerNode(n, a) })
	case InitializeNode:
		return edit(a.Node, func(n *v1.Node) { n.Labels[karpv1.NodeInitializedLabelKey] = "true" })
	case ReleaseHold:
		return edit(a.Node, func(n *v1.Node) {
			if holding(n) {
				n.Spec.Unschedulable = a.Keep
				delete(n.Annotations, HoldAnnotation)
			}
		})
	case TaintNode:
		return edit(a.Node, func(n *v1.Node) {
			n.Spec.Taints = without(n.Spec.Taints, karpv1.DisruptedTaintKey)
			if a.Taint {
				n.Spec.Taints = append(n.Spec.Taints, karpv1.DisruptedNoScheduleTaint)
			}
		})
	case DeleteNode:
		return edit(a.Node, func(n *v1.Node) {
			if n.DeletionTimestamp == nil {
				at := metav1.NewTime(w.now)
				n.DeletionTimestamp = &at
			}
		})
	case RemoveNodeFinalizer:
		return edit(a.Node, func(n *v1.Node) { n.Finalizers = nil })
	case Drain:
		for _, uid := range w.podsOn(a.Node) {
			w.replacePod(uid)
			return Drained{Node: a.Node, Remaining: 1}
		}
		return Drained{Node: a.Node}
	}
	panic(fmt.Sprintf("%T", a))
}

// boot takes every machine one step further: it joins, then becomes ready.
func (w *world) boot() {
	for _, id := range slices.Sorted(maps.Keys(w.machines)) {
		m := w.machines[id]
		if m.State == "terminated" || m.broken {
			continue
		}
		name := "node-" + m.ID
		if !m.joined {
			m.joined = true
			n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelHostname: name}}}
			n.Spec.ProviderID = id
			n.Spec.Taints = []v1.Taint{karpv1.UnregisteredNoExecuteTaint}
			n.Status.Allocatable = typeM4.Allocatable
			if m.InstanceType == typeM8.Name {
				n.Status.Allocatable = typeM8.Allocatable
			}
			if m.small {
				n.Status.Allocatable = resources(2, 10)
			}
			w.putNode(n)
			continue
		}
		if n := w.nodes[name]; n != nil && !nodeReady(n) {
			n = n.DeepCopy()
			n.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}
			w.putNode(n)
		}
	}
}
