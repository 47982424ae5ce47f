// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
)

// story plays events written as words. It remembers objects as an API server would: a patch or a registration that is
// "done" changes them, and "seen" shows them to the state.
type story struct {
	state  *State
	now    time.Time
	claims map[string]*karpv1.NodeClaim
	nodes  map[string]*v1.Node
	sent   map[string]Action
}

func newStory() *story {
	return &story{
		state: New(Config{}), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		claims: map[string]*karpv1.NodeClaim{}, nodes: map[string]*v1.Node{}, sent: map[string]Action{},
	}
}

// restart forgets the state, not the world.
func (st *story) restart() { st.state = New(Config{}) }

func (st *story) play(t *testing.T, w []string) []string {
	var events []Event
	switch w[0] {
	case "restart":
		st.restart()
		return nil
	case "wait":
		return st.wait(t, w[1])
	case "open":
		var out []string
		for _, o := range st.state.Open() {
			out = append(out, fmt.Sprintf("%s free %s", o.Name, o.Free.Cpu()))
		}
		return out
	case "pods":
		var out []string
		for _, p := range w[1:] {
			claim, node := st.state.Reservation(types.UID(p))
			out = append(out, fmt.Sprintf("%s claim=%s node=%s", p, claim, node))
		}
		return out
	case "where":
		var out []string
		for c := range st.state.Claims() {
			out = append(out, fmt.Sprintf("%s launched %t registered %t initialized %t handed over %t ending %t %s", c.Name,
				c.Launched, c.Registered, c.Initialized, c.HandedOver, c.Ending, c.Reason))
		}
		return append(out, fmt.Sprintf("%+v", st.state.Counters()))
	case "blocked":
		until, message, ok := st.state.Blocked("default")
		return []string{fmt.Sprintf("%t for %s: %s", ok, until.Sub(st.now), message)}
	case "usage":
		u := st.state.Usage("default")
		nodes := u["nodes"]
		return []string{fmt.Sprintf("cpu %s nodes %s closed %v", u.Cpu(), nodes.String(), st.gated(Closed))}
	case "released":
		return []string{fmt.Sprint(st.gated(Released))}
	default:
		events = st.events(t, w)
	}
	var out []string
	for _, ev := range events {
		out = append(out, st.apply(ev)...)
	}
	return out
}

func (st *story) apply(ev Event) []string {
	var out []string
	for _, a := range st.state.Apply(st.now, ev) {
		st.sent[a.Key()] = a
		out = append(out, describe(a))
	}
	return out
}

// wait lets time pass, with a Tick at every deadline.
func (st *story) wait(t *testing.T, by string) []string {
	d, err := time.ParseDuration(by)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	end := st.now.Add(d)
	for range 1000 {
		at, ok := st.state.NextDeadline()
		if !ok || at.After(end) {
			break
		}
		st.now = at
		for _, line := range st.apply(Tick{}) {
			out = append(out, fmt.Sprintf("+%s %s", (d-end.Sub(at)).Round(time.Millisecond), line))
		}
	}
	st.now = end
	return out
}

func (st *story) events(t *testing.T, w []string) []Event {
	switch w[0] {
	case "synced":
		return []Event{Synced{}}
	case "pool":
		if w[1] == "gone" {
			return []Event{PoolGone{Name: "default"}}
		}
		pool := testPool(w[1])
		if len(w) > 2 {
			pool.Spec.Disruption.Budgets[0].Nodes = w[2]
		}
		if len(w) > 3 { // in force for this long from midnight, UTC
			d, _ := time.ParseDuration(w[3])
			schedule := "0 0 * * *"
			pool.Spec.Disruption.Budgets[0].Schedule = &schedule
			pool.Spec.Disruption.Budgets[0].Duration = &metav1.Duration{Duration: d}
		}
		return []Event{PoolSeen{Pool: pool}}
	case "plan":
		return []Event{st.plan(w[1], w[2:])}
	case "join":
		return []Event{Planned{Joins: []Join{{Claim: w[1], Pods: podList(w[2])}}}}
	case "restore":
		return []Event{Restore{Claim: w[1], Node: plannedNode(w[1]), Options: testOptions(), Daemons: v1.ResourceList{}}}
	case "refused":
		return []Event{ClaimRefused{Name: w[1], Message: strings.Join(w[2:], " ")}}
	case "claim":
		return st.claimEvents(w[1], w[2:])
	case "launched":
		attempt, _ := strconv.Atoi(w[2])
		ev := Launched{Group: w[1], Attempt: attempt}
		for _, word := range w[3:] {
			if f, ok := strings.CutPrefix(word, "!"); ok {
				ev.Failures = append(ev.Failures, failure(f))
			} else {
				ev.Instances = append(ev.Instances, instance(word))
			}
		}
		return []Event{ev}
	case "launchfailed":
		attempt, _ := strconv.Atoi(w[2])
		ev := LaunchFailed{Group: w[1], Attempt: attempt, Failure: cloudprovider.LaunchFailure(w[3]), Message: "the cloud says no"}
		for _, f := range w[4:] {
			switch f {
			case "spent":
				ev.Spent = true
			case "untried":
				ev.Untried = true
			default:
				ev.Failures = append(ev.Failures, failure(strings.TrimPrefix(f, "!")))
			}
		}
		return []Event{ev}
	case "found":
		ev := Found{Group: w[1]}
		for _, word := range w[2:] {
			ev.Instances = append(ev.Instances, instance(word))
		}
		return []Event{ev}
	case "node":
		return st.nodeEvents(w[1], w[2:])
	case "pod":
		return podEvents(w[1], w[2:])
	case "done":
		return []Event{st.done(w[1])}
	case "failed":
		return []Event{Failed{Key: w[1], Message: "no", Gone: len(w) > 2}}
	case "drained":
		n, _ := strconv.Atoi(w[2])
		return []Event{Drained{Node: w[1], Remaining: n}}
	case "instancegone":
		return []Event{InstanceGone{ProviderID: "aws:///a/" + w[1]}}
	}
	t.Fatalf("no such event: %v", w)
	return nil
}

// plan reads "a:p1,p2 b:p3".
func (st *story) plan(group string, claims []string) Event {
	g := Group{ID: group}
	for i, word := range claims {
		name, pods, _ := strings.Cut(word, ":")
		n := newClaim(group, name, i, len(claims), podList(pods)...)
		st.claims[name] = n.Object
		g.Claims = append(g.Claims, n)
	}
	return Planned{Groups: []Group{g}}
}

func podList(names string) []Pod {
	var out []Pod
	for name := range strings.SplitSeq(names, ",") {
		if name != "" {
			out = append(out, testPod(name))
		}
	}
	return out
}

func (st *story) claimEvents(name string, w []string) []Event {
	var out []Event
	for _, word := range w {
		c := st.claims[name].DeepCopy()
		c.UID = types.UID("uid-" + name)
		switch word {
		case "seen":
		case "deleted":
			at := metav1.NewTime(st.now)
			c.DeletionTimestamp = &at
		case "grace":
			c.Spec.TerminationGracePeriod = &metav1.Duration{Duration: time.Hour}
		case "gone":
			out = append(out, ClaimGone{Name: name})
			continue
		}
		st.claims[name] = c
		out = append(out, ClaimSeen{Claim: c})
	}
	return out
}

// nodeEvents reads what a Node has become: "i-1" is its machine.
func (st *story) nodeEvents(name string, w []string) []Event {
	n := st.nodes[name]
	if n == nil {
		n = &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelHostname: "host-" + name}}}
		n.Spec.Taints = []v1.Taint{karpv1.UnregisteredNoExecuteTaint, {Key: v1.TaintNodeNotReady, Effect: v1.TaintEffectNoSchedule}}
		n.Status.Allocatable = typeM4.Allocatable
	}
	n = n.DeepCopy()
	for _, word := range w {
		switch {
		case word == "gone":
			delete(st.nodes, name)
			return []Event{NodeGone{Name: name}}
		case word == "ready":
			n.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}
			n.Spec.Taints = without(n.Spec.Taints, v1.TaintNodeNotReady)
		case word == "late": // the node lifecycle controller has not taken its taint off yet
			n.Spec.Taints = append(n.Spec.Taints, v1.Taint{Key: v1.TaintNodeNotReady, Effect: v1.TaintEffectNoExecute})
		case word == "starting":
			n.Spec.Taints = append(n.Spec.Taints, v1.Taint{Key: "example.com/starting", Effect: v1.TaintEffectNoSchedule})
		case word == "started":
			n.Spec.Taints = without(n.Spec.Taints, "example.com/starting")
		case word == "cloudless":
			n.Spec.Taints = append(n.Spec.Taints, v1.Taint{Key: "node.cloudprovider.kubernetes.io/uninitialized", Effect: v1.TaintEffectNoSchedule})
		case word == "clouded":
			n.Spec.Taints = without(n.Spec.Taints, "node.cloudprovider.kubernetes.io/uninitialized")
		case word == "precious", word == "cheap":
			n.Annotations = map[string]string{karpv1.DoNotDisruptAnnotationKey: strconv.FormatBool(word == "precious")}
		case word == "untainted":
			n.Spec.Taints = without(n.Spec.Taints, karpv1.UnregisteredTaintKey)
		case word == "ours":
			n.Finalizers = []string{karpv1.TerminationFinalizer}
		case word == "cordoned", word == "uncordoned":
			n.Spec.Unschedulable = word == "cordoned"
		case word == "keep":
			n.Annotations[HoldAnnotation] = HoldKeep
		case word == "small":
			n.Status.Allocatable = resources(1, 10)
		case word == "deleted":
			at := metav1.NewTime(st.now)
			n.DeletionTimestamp = &at
		case strings.HasPrefix(word, "i-"):
			n.Spec.ProviderID = "aws:///a/" + word
		}
	}
	st.nodes[name] = n
	return []Event{NodeSeen{Node: n}}
}

func without(taints []v1.Taint, key string) []v1.Taint {
	return slices.DeleteFunc(slices.Clone(taints), func(t v1.Taint) bool { return t.Key == key })
}

func podEvents(name string, w []string) []Event {
	p := testPod(name)
	switch w[0] {
	case "bound":
		return []Event{PodSeen{
			Pod: p, Node: w[1], DaemonSet: slices.Contains(w, "daemonset"),
			Terminating: slices.Contains(w, "terminating"), Evicted: slices.Contains(w, "evicted"),
		}}
	case "big":
		p.Requests = resources(9, 1)
		return []Event{PodSeen{Pod: p}}
	case "reserved":
		return []Event{PodReserved{UID: p.UID, Node: w[1]}}
	case "unreserved":
		return []Event{PodUnreserved{UID: p.UID}}
	case "misfit":
		return []Event{PodMisfit{UID: p.UID}}
	default:
		return []Event{PodGone{UID: p.UID}}
	}
}

// done answers an action; what it wrote is in the world from now on.
func (st *story) done(key string) Event {
	switch a := st.sent[key].(type) {
	case PatchClaim:
		st.claims[a.Claim.Name] = a.Claim
	case RegisterNode:
		st.nodes[a.Node] = registerNode(st.nodes[a.Node], a)
	case InitializeNode:
		n := st.nodes[a.Node].DeepCopy()
		n.Labels[karpv1.NodeInitializedLabelKey] = "true"
		st.nodes[a.Node] = n
	case ReleaseHold:
		n := st.nodes[a.Node].DeepCopy()
		delete(n.Annotations, HoldAnnotation)
		n.Spec.Unschedulable = a.Keep
		st.nodes[a.Node] = n
	case TaintNode:
		n := st.nodes[a.Node].DeepCopy()
		n.Spec.Taints = without(n.Spec.Taints, karpv1.DisruptedTaintKey)
		if a.Taint {
			n.Spec.Taints = append(n.Spec.Taints, karpv1.DisruptedNoScheduleTaint)
		}
		st.nodes[a.Node] = n
	}
	return Done{Key: key}
}

func registerNode(n *v1.Node, a RegisterNode) *v1.Node {
	n = n.DeepCopy()
	if n.Annotations == nil {
		n.Annotations = map[string]string{}
	}
	maps.Copy(n.Labels, a.Claim.Labels)
	n.Labels[karpv1.NodeRegisteredLabelKey] = "true"
	n.Finalizers = []string{karpv1.TerminationFinalizer}
	n.Spec.Taints = without(n.Spec.Taints, karpv1.UnregisteredTaintKey)
	if a.Hold {
		n.Spec.Unschedulable = true
		n.Annotations[HoldAnnotation] = strconv.FormatInt(a.HoldUntil, 10)
	}
	return n
}

// instance reads "i-1", "i-1:m.8", "i-1=claim".
func instance(word string) cloudprovider.Instance {
	word, claim, tagged := strings.Cut(word, "=")
	id, kind, ok := strings.Cut(word, ":")
	if !ok {
		kind = "m.4"
	}
	inst := cloudprovider.Instance{
		ID: id, ProviderID: "aws:///a/" + id, InstanceType: kind, Zone: "a",
		CapacityType: karpv1.CapacityTypeOnDemand, State: "pending",
	}
	if tagged {
		inst.Tags = map[string]string{claimTag: claim}
	}
	return inst
}

// failure reads "m.4/a".
func failure(word string) cloudprovider.OfferingFailure {
	kind, zone, _ := strings.Cut(word, "/")
	return cloudprovider.OfferingFailure{
		InstanceType: kind, Zone: zone, CapacityType: karpv1.CapacityTypeOnDemand,
		Code: "InsufficientInstanceCapacity", Message: "no " + kind + " in " + zone,
	}
}

// describe writes an action as one line.
func describe(a Action) string {
	line := a.Key()
	switch a := a.(type) {
	case UpdatePlannedNode:
		line += fmt.Sprintf(" type=%s host=%s cpu=%s", a.Node.Labels[v1.LabelInstanceTypeStable], a.Node.Labels[v1.LabelHostname], a.Node.Status.Allocatable.Cpu())
	case Requeue:
		line += fmt.Sprintf(" %v", a.Pods)
		if a.Node != "" {
			line += " paired with " + a.Node
		}
		if a.Reason != "" {
			line += ": " + a.Reason
		}
	case Activate:
		line += fmt.Sprintf(" %v", a.Pods)
	case Launch:
		line += fmt.Sprintf(" attempt %d", a.Attempt)
		for _, c := range a.Claims {
			line += " " + c.Name
		}
		line += " of"
		for _, o := range a.Options {
			line += " " + o.InstanceType.Name + "/" + o.Offering.Zone
		}
	case TagInstance:
		line += " " + a.ProviderID
	case PatchClaim:
		line += describeStatus(a.Claim)
	case RegisterNode:
		line += fmt.Sprintf(" hold=%t", a.Hold)
	case ReleaseHold:
		line += fmt.Sprintf(" keep=%t", a.Keep)
	case TaintNode:
		line += fmt.Sprintf(" %t", a.Taint)
	case Drain:
		if a.Deadline != 0 {
			line += " by " + time.Unix(a.Deadline, 0).UTC().Format(time.TimeOnly)
		}
	case DeleteClaim:
		line += " " + a.Reason + ": " + a.Message
	case Publish:
		line += ": " + a.Message
	}
	return line
}

func describeStatus(c *karpv1.NodeClaim) string {
	var line strings.Builder
	if n := c.Annotations[AttemptAnnotation]; n != "1" {
		line.WriteString(" attempt=" + n)
	}
	for i := range c.Status.Conditions {
		k := &c.Status.Conditions[i]
		line.WriteString(" " + k.Type + "=" + string(k.Status))
		if k.Status != metav1.ConditionTrue {
			line.WriteString("(" + k.Reason + ")")
		}
	}
	return line.String()
}

// gated are the nodes with the gate.
func (st *story) gated(want Gate) []string {
	var out []string
	for node, g := range st.state.Gates() {
		if g == want {
			out = append(out, node)
		}
	}
	slices.Sort(out)
	return out
}
