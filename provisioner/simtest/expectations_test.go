// SPDX-License-Identifier: Apache-2.0

package simtest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// expectations look at the world.
var expectations = map[string]syntax{
	"claims": {1, 1}, "instances": {1, 1}, "launched": {1, 1}, "nodes": {1, 1}, "bound": {2, 2}, "parked": {1, 2}, "pending": {2, 2},
	"event": {3, 3}, "no-event": {2, 2}, "usd": {1, 1}, "vcpus": {1, 1}, "calls": {2, 2}, "throttled": {1, 1}, "same-claims": {0, 0}, "nothing-left": {0, 0},
	"on-nodes": {2, 2}, "zones": {2, 4}, "types": {1, 4}, "condition": {4, 5}, "nominated": {2, 2}, "templates": {1, 1},
	"together": {2, 2}, "counted": {2, 2}, "field": {4, 4}, "elapsed": {1, 1}, "fleet": {1, 1}, "object-event": {2, 2}, "held": {1, 1},
}

// holds is nil if the expectation is met now.
func (s *scenario) holds(c command) error {
	w, args := s.w, c.args
	switch c.verb {
	case "claims":
		return count(args[0], "NodeClaims", w.names("nodeclaim"))
	case "instances":
		return count(args[0], "live machines", w.live())
	case "launched":
		return count(args[0], "machines ever launched", w.aws.Instances())
	case "nodes":
		return count(args[0], "Nodes", w.names("node"))
	case "templates":
		return count(args[0], "launch templates", w.aws.LaunchTemplates())
	case "held":
		return count(args[0], "Nodes that are held", w.held())
	case "bound":
		return count(args[1], "bound pods", w.podsWhere(args[0], func(p *v1.Pod) bool { return p.Spec.NodeName != "" }))
	case "pending":
		return count(args[1], "pending pods", w.podsWhere(args[0], func(p *v1.Pod) bool { return p.Spec.NodeName == "" }))
	case "counted":
		return count(args[1], "pods", w.pods(args[0]))
	case "parked":
		prefix := ""
		if len(args) == 2 {
			prefix = args[1]
		}
		return count(args[0], "parked pods", w.podsWhere(prefix, func(p *v1.Pod) bool { return w.Adapter.Parked(p.UID) != nil }))
	case "nominated":
		return count(args[1], "pods with a NodeClaim as nominated node", w.podsWhere(args[0], w.nominated))
	case "calls":
		return count(args[1], args[0]+" calls", w.calls(args[0]))
	case "throttled":
		return count(args[0], "throttled AWS calls", w.throttled())
	case "fleet":
		return w.fleet(args[0])
	case "usd":
		return w.usd(args[0])
	case "vcpus":
		return w.vcpus(args[0])
	case "elapsed":
		return s.elapsed(args[0])
	case "event":
		return w.event(args[0], args[1], args[2])
	case "no-event":
		if err := w.event(args[0], args[1], ""); err == nil {
			return fmt.Errorf("pod %s has an event %s", args[0], args[1])
		}
		return nil
	case "object-event":
		return w.objectEvent(args[0], args[1])
	case "same-claims":
		if now := w.claimUIDs(); !maps.Equal(now, w.remembered) {
			return fmt.Errorf("NodeClaims are %v, were %v", now, w.remembered)
		}
		return nil
	case "on-nodes":
		return w.onNodes(args[0], args[1])
	case "together":
		return w.together(args[0], args[1])
	case "zones":
		return w.spread("topology.kubernetes.io/zone", args[0], args[1:])
	case "types":
		return w.types(args)
	case "condition":
		return w.condition(args)
	case "field":
		return w.field(args)
	case "nothing-left":
		return w.nothingLeft()
	}
	return errors.New("not an expectation")
}

// count compares the number of things and shows them.
func count[T any](want, what string, have []T) error {
	a, err := parseAmount(want)
	if err != nil {
		return err
	}
	if err := a.check(what, float64(len(have))); err != nil {
		if len(have) <= 10 {
			return fmt.Errorf("%w: %v", err, have)
		}
		return err
	}
	return nil
}

func (w *world) podsWhere(prefix string, test func(*v1.Pod) bool) []string {
	var out []string
	for _, p := range w.pods(prefix) {
		if test(&p) {
			out = append(out, p.Name)
		}
	}
	return out
}

func (w *world) nominated(p *v1.Pod) bool {
	return slices.Contains(w.names("nodeclaim"), p.Status.NominatedNodeName)
}

// calls are the calls of an action that were not dry runs, by when they came.
func (w *world) calls(action string) []string {
	var out []string
	for _, c := range w.aws.Calls() {
		if c.Action == action && !c.DryRun {
			out = append(out, c.Time.Sub(w.began).String())
		}
	}
	return out
}

// throttled are the calls that AWS refused for their rate.
func (w *world) throttled() []string {
	var out []string
	for _, c := range w.aws.Calls() {
		if c.Code == "RequestLimitExceeded" {
			out = append(out, c.Action+" at "+c.Time.Sub(w.began).String())
		}
	}
	return out
}

// fleet is the capacity that the last CreateFleet asked for.
func (w *world) fleet(want string) error {
	have := ""
	for _, c := range w.aws.Calls() {
		if c.Action == "CreateFleet" && !c.DryRun {
			have = c.Params["TargetCapacitySpecification.TotalTargetCapacity"]
		}
	}
	if have != want {
		return fmt.Errorf("the last CreateFleet asked for %q machines, want %s", have, want)
	}
	return nil
}

func (w *world) usd(want string) error {
	a, err := parseAmount(want)
	if err != nil {
		return err
	}
	sum := 0.0
	var types []string
	for _, i := range w.live() {
		sum += i.PriceUSDPerHour
		types = append(types, i.InstanceType)
	}
	if err := a.check("USD/h of live machines", sum); err != nil {
		return fmt.Errorf("%w: %v", err, types)
	}
	return nil
}

func (w *world) vcpus(want string) error {
	a, err := parseAmount(want)
	if err != nil {
		return err
	}
	sum := 0
	for _, i := range w.live() {
		sum += i.VCPUs
	}
	return a.check("vCPUs of live machines", float64(sum))
}

// event looks for an event of the pod whose text contains the part; the newest of the reason counts.
func (w *world) event(pod, reason, part string) error {
	list, err := w.api().EventsV1().Events("default").List(w.ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	var said []string
	for _, e := range list.Items {
		if e.Regarding.Name != pod {
			continue
		}
		if e.Reason == reason && strings.Contains(e.Note, part) {
			if len([]rune(e.Note)) > 250 && reason != "FailedScheduling" {
				return fmt.Errorf("the event has more than 250 characters: %s", e.Note)
			}
			return nil
		}
		said = append(said, e.Reason+": "+e.Note)
	}
	return fmt.Errorf("pod %s has no event %s with %q in it, but\n\t%s", pod, reason, part, strings.Join(said, "\n\t"))
}

func (w *world) objectEvent(reason, part string) error {
	list, err := w.api().EventsV1().Events("").List(w.ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	var said []string
	for _, e := range list.Items {
		if e.Regarding.Kind == "Pod" {
			continue
		}
		if e.Reason == reason && strings.Contains(e.Note, part) {
			return nil
		}
		said = append(said, e.Regarding.Name+": "+e.Reason+": "+e.Note)
	}
	return fmt.Errorf("no NodeClaim, Node or NodePool has an event %s with %q in it, but\n\t%s", reason, part, strings.Join(said, "\n\t"))
}

// claimUIDs is the uid of every NodeClaim.
func (w *world) claimUIDs() map[string]string {
	out := map[string]string{}
	for _, c := range w.list(nodeClaims) {
		out[c.GetName()] = string(c.GetUID())
	}
	return out
}

// onNodes counts the nodes that pods are bound to.
func (w *world) onNodes(prefix, want string) error {
	nodes := map[string]int{}
	for _, p := range w.pods(prefix) {
		if p.Spec.NodeName != "" {
			nodes[p.Spec.NodeName]++
		}
	}
	return count(want, "nodes with pods "+prefix, slices.Sorted(maps.Keys(nodes)))
}

// together says that two pods are bound to one node.
func (w *world) together(a, b string) error {
	p, err := w.api().CoreV1().Pods("default").Get(w.ctx, a, metav1.GetOptions{})
	if err != nil {
		return err
	}
	q, err := w.api().CoreV1().Pods("default").Get(w.ctx, b, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if p.Spec.NodeName == "" || p.Spec.NodeName != q.Spec.NodeName {
		return fmt.Errorf("%s is on %q, %s on %q", a, p.Spec.NodeName, b, q.Spec.NodeName)
	}
	return nil
}

// spread compares the numbers of bound pods per value of a node label, largest first, or as value=number.
func (w *world) spread(label, prefix string, want []string) error {
	have := map[string]int{}
	for _, p := range w.pods(prefix) {
		if p.Spec.NodeName == "" {
			continue
		}
		node, err := w.api().CoreV1().Nodes().Get(w.ctx, p.Spec.NodeName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		have[node.Labels[label]]++
	}
	if strings.Contains(want[0], "=") {
		var said []string
		for _, key := range slices.Sorted(maps.Keys(have)) {
			said = append(said, key+"="+strconv.Itoa(have[key]))
		}
		if slices.Sort(want); !slices.Equal(said, want) {
			return fmt.Errorf("pods %s are spread as %v, want %v", prefix, said, want)
		}
		return nil
	}
	numbers := slices.Sorted(maps.Values(have))
	slices.Reverse(numbers)
	var said []string
	for _, n := range numbers {
		said = append(said, strconv.Itoa(n))
	}
	if !slices.Equal(said, want) {
		return fmt.Errorf("pods %s are spread as %v, want %v", prefix, have, want)
	}
	return nil
}

// types compares the live machines: type=number, or a part of it that all have: type, zone or capacity type.
func (w *world) types(want []string) error {
	have := map[string]int{}
	for _, i := range w.live() {
		have[i.InstanceType]++
		have[i.Zone]++
		have[i.CapacityType]++
	}
	for _, text := range want {
		key, number, ok := strings.Cut(text, "=")
		n, err := strconv.Atoi(number)
		if !ok || err != nil {
			return fmt.Errorf("%q is not like m5.large=1", text)
		}
		if have[key] != n {
			return fmt.Errorf("live machines are %v, want %s", have, text)
		}
	}
	return nil
}

// condition KIND NAME TYPE STATUS [PART] compares a status condition; the name "*" is the only object of the kind.
func (w *world) condition(args []string) error {
	obj, err := w.object(args[0], args[1])
	if err != nil {
		return err
	}
	conditions, _, err := unstructured.NestedSlice(obj.Object, "status", "conditions")
	if err != nil {
		return err
	}
	for _, c := range conditions {
		c := c.(map[string]any)
		if c["type"] != args[2] {
			continue
		}
		text := fmt.Sprintf("%v %v: %v", c["status"], c["reason"], c["message"])
		if c["status"] != args[3] || len(args) == 5 && !strings.Contains(text, args[4]) {
			return fmt.Errorf("condition %s of %s is %s", args[2], args[1], text)
		}
		return nil
	}
	if args[3] == "Absent" {
		return nil
	}
	return fmt.Errorf("%s %s has no condition %s", args[0], args[1], args[2])
}

// field KIND NAME PATH VALUE compares a field as text; a field that is not there is "".
func (w *world) field(args []string) error {
	obj, err := w.object(args[0], args[1])
	if err != nil {
		return err
	}
	value, ok, err := unstructured.NestedFieldNoCopy(obj.Object, strings.Split(args[2], "/")...)
	if err != nil {
		return err
	}
	text := ""
	if ok {
		text = fmt.Sprint(value)
	}
	if text != args[3] {
		return fmt.Errorf("%s of %s is %q, want %q", args[2], args[1], text, args[3])
	}
	return nil
}

func (w *world) object(kind, name string) (*unstructured.Unstructured, error) {
	if name == "*" {
		names := w.names(kind)
		if len(names) != 1 {
			return nil, fmt.Errorf("there are %d objects of kind %s", len(names), kind)
		}
		name = names[0]
	}
	var obj runtime.Object
	var err error
	switch kind {
	case "pod":
		obj, err = w.api().CoreV1().Pods("default").Get(w.ctx, name, metav1.GetOptions{})
	case "node":
		obj, err = w.api().CoreV1().Nodes().Get(w.ctx, name, metav1.GetOptions{})
	case "nodepool", "nodeclaim", "nodeclass":
		return w.custom(kinds[kind]).Get(w.ctx, name, metav1.GetOptions{})
	default:
		err = fmt.Errorf("unknown kind %q", kind)
	}
	if err != nil {
		return nil, err
	}
	m, err := asMap(obj)
	return &unstructured.Unstructured{Object: m}, err
}

// nothingLeft says that what was launched and made is gone.
func (w *world) nothingLeft() error {
	var left []string
	for _, i := range w.live() {
		left = append(left, "machine "+i.ID)
	}
	for _, n := range w.names("nodeclaim") {
		left = append(left, "NodeClaim "+n)
	}
	for _, t := range w.aws.LaunchTemplates() {
		left = append(left, "launch template "+t.Name)
	}
	nodes, err := w.api().CoreV1().Nodes().List(w.ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, n := range nodes.Items {
		if strings.HasPrefix(n.Spec.ProviderID, "aws:") {
			left = append(left, "Node "+n.Name)
		}
	}
	if len(left) > 0 {
		return fmt.Errorf("left are %v", left)
	}
	return nil
}

// createOther creates objects of the other groups.
func (w *world) createOther(obj runtime.Object) error {
	var err error
	switch o := obj.(type) {
	case *appsv1.DaemonSet:
		_, err = w.api().AppsV1().DaemonSets("default").Create(w.ctx, o, metav1.CreateOptions{})
	case *storagev1.StorageClass:
		_, err = w.api().StorageV1().StorageClasses().Create(w.ctx, o, metav1.CreateOptions{})
	default:
		err = fmt.Errorf("objects of type %T are not created here", obj)
	}
	return err
}
