// SPDX-License-Identifier: Apache-2.0

package simtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/fakeaws"
	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider/pricefile"
)

// syntax is how many words an order or expectation takes.
type syntax struct{ min, max int }

// orders change the world.
var orders = map[string]syntax{
	"apply": {1, 1}, "delete": {2, 2}, "patch": {3, 4}, "pods": {2, 2}, "replicaset": {2, 2}, "resize": {1, 1},
	"advance": {1, 1}, "settings": {1, 1}, "fault": {1, 1}, "refuse": {3, 3}, "restart": {0, 0}, "remember": {0, 0},
	"touch-nodes": {1, 1}, "touch-pods": {1, 1}, "interrupt": {1, 1}, "require": {2, 9}, "node": {1, 1}, "crds": {1, 1}, "interrupt-all": {0, 0}, "karpenter": {1, 1}, "prices": {1, 1},
}

// kinds are the resources that scripts speak of.
var kinds = map[string]schema.GroupVersionResource{
	"nodepool": nodePools, "nodeclaim": nodeClaims, "nodeclass": nodeClasses,
	"pod": v1.SchemeGroupVersion.WithResource("pods"), "node": v1.SchemeGroupVersion.WithResource("nodes"),
}

// order carries out a command without a mode.
func (s *scenario) order(c command) error {
	switch c.verb {
	case "apply":
		return s.apply(c.args[0])
	case "delete":
		return s.delete(c.args[0], c.args[1])
	case "patch":
		return s.patch(c.args[0], c.args[1], c.args[2:])
	case "pods":
		return s.createPods(c)
	case "replicaset":
		n, err := strconv.Atoi(c.args[1])
		if err != nil {
			return err
		}
		pod, err := s.podTemplate(c.args[0], c.keys)
		if err != nil {
			return err
		}
		return s.w.replicaSet(c.args[0], n, pod)
	case "resize":
		return s.resize(c.args[0], c.keys)
	case "advance":
		d, err := time.ParseDuration(c.args[0])
		time.Sleep(d)
		return err
	case "settings":
		return s.settings(c.args[0])
	case "fault":
		return s.fault(c.args[0])
	case "refuse":
		return s.refuse(c.args[0], c.args[1], c.args[2])
	case "restart":
		s.w.restart()
		return nil
	case "remember":
		s.w.remembered = s.w.claimUIDs()
		return nil
	case "touch-nodes", "touch-pods":
		n, err := strconv.Atoi(c.args[0])
		if err != nil {
			return err
		}
		return s.touch(c.verb, n)
	case "interrupt":
		return s.interrupt(c.args[0])
	case "require":
		return s.require(c.args[0], c.args[1:])
	case "node":
		return s.node(c.args[0], c.keys)
	case "interrupt-all":
		for _, i := range s.w.live() {
			s.w.aws.Interrupt(i.ID)
		}
		return nil
	case "karpenter":
		return s.w.karpenter(c.args[0])
	case "prices":
		f, err := pricefile.Parse([]byte(s.files[c.args[0]]))
		if err != nil {
			return err
		}
		s.w.prices = f
		s.w.cloud.SetPrices(f)
		return nil
	case "crds":
		s.w.serveCRDs(c.args[0] == "served")
		return nil
	}
	return errors.New("not an order")
}

// apply creates the objects of a YAML section.
func (s *scenario) apply(section string) error {
	text, ok := s.files[section]
	if !ok {
		return fmt.Errorf("there is no section %s", section)
	}
	for doc := range strings.SplitSeq("\n"+text, "\n---") {
		if strings.TrimSpace(doc) == "" {
			continue
		}
		if err := s.createObject(doc); err != nil {
			return fmt.Errorf("creating an object of %s: %w", section, err)
		}
	}
	return nil
}

func (s *scenario) createObject(doc string) error {
	raw, err := yaml.YAMLToJSON([]byte(doc))
	if err != nil {
		return err
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(raw); err != nil {
		return err
	}
	if gvr, ok := kinds[strings.ToLower(strings.TrimPrefix(u.GetKind(), "EC2"))]; ok && gvr.Group != "" {
		_, err := s.w.custom(gvr).Create(s.w.ctx, u, metav1.CreateOptions{})
		return err
	}
	obj, err := runtime.Decode(scheme.Codecs.UniversalDeserializer(), raw)
	if err != nil {
		return err
	}
	return s.w.createCore(obj)
}

func (s *scenario) podTemplate(name string, keys map[string]string) (*v1.Pod, error) {
	pod := &v1.Pod{}
	if section := keys["from"]; section != "" {
		if err := yaml.UnmarshalStrict([]byte(s.files[section]), pod); err != nil {
			return nil, fmt.Errorf("reading section %s: %w", section, err)
		}
	}
	pod.Namespace, pod.Labels = "default", withDefault(pod.Labels, "app", name)
	if pod.Spec.SchedulerName == "" {
		pod.Spec.SchedulerName = "jit-scheduler"
	}
	if pod.Spec.TerminationGracePeriodSeconds == nil {
		pod.Spec.TerminationGracePeriodSeconds = new(int64)
	}
	if len(pod.Spec.Containers) == 0 {
		pod.Spec.Containers = []v1.Container{{Name: "c", Image: "pause"}}
	}
	requests := v1.ResourceList{}
	maps.Copy(requests, pod.Spec.Containers[0].Resources.Requests)
	for key, value := range keys {
		switch key {
		case "cpu", "memory":
			q, err := resource.ParseQuantity(value)
			if err != nil {
				return nil, fmt.Errorf("%s=%s: %w", key, value, err)
			}
			requests[v1.ResourceName(key)] = q
		case "priority":
			n, err := strconv.ParseInt(value, 10, 32)
			if err != nil {
				return nil, fmt.Errorf("priority=%s: %w", value, err)
			}
			pod.Spec.Priority = new(int32(n))
		case "on":
			pod.Spec.NodeName, pod.Spec.SchedulerName = value, v1.DefaultSchedulerName
		case "from":
		default:
			return nil, fmt.Errorf("a pod has no key %q", key)
		}
	}
	if len(requests) == 0 && len(pod.Spec.Containers[0].Resources.Limits) == 0 {
		requests[v1.ResourceCPU] = resource.MustParse("1")
	}
	pod.Spec.Containers[0].Resources.Requests = requests
	return pod, nil
}

func withDefault(m map[string]string, key, value string) map[string]string {
	if m == nil {
		m = map[string]string{}
	}
	if _, ok := m[key]; !ok {
		m[key] = value
	}
	return m
}

// createPods creates bare pods NAME-1 to NAME-n.
func (s *scenario) createPods(c command) error {
	n, err := strconv.Atoi(c.args[1])
	if err != nil {
		return err
	}
	for i := range n {
		pod, err := s.podTemplate(c.args[0], c.keys)
		if err != nil {
			return err
		}
		pod.Name = fmt.Sprintf("%s-%d", c.args[0], i+1)
		for key, value := range pod.Spec.NodeSelector {
			pod.Spec.NodeSelector[key] = strings.ReplaceAll(value, "$", strconv.Itoa(i+1))
		}
		for j := range pod.Spec.Volumes { // as a StatefulSet names its claims
			if claim := pod.Spec.Volumes[j].PersistentVolumeClaim; claim != nil {
				claim.ClaimName = strings.ReplaceAll(claim.ClaimName, "$", strconv.Itoa(i+1))
			}
		}
		if _, err := s.w.api().CoreV1().Pods("default").Create(s.w.ctx, pod, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

func (s *scenario) resize(name string, keys map[string]string) error {
	pod, err := s.w.api().CoreV1().Pods("default").Get(s.w.ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	pod = pod.DeepCopy()
	for key, value := range keys {
		q, err := resource.ParseQuantity(value)
		if err != nil {
			return err
		}
		pod.Spec.Containers[0].Resources.Requests[v1.ResourceName(key)] = q
	}
	_, err = s.w.api().CoreV1().Pods("default").UpdateResize(s.w.ctx, name, pod, metav1.UpdateOptions{})
	return err
}

// delete deletes the named object, or "*", all of the kind.
func (s *scenario) delete(kind, name string) error {
	if kind == "replicaset" {
		return s.w.replicaSet(name, 0, nil)
	}
	gvr, ok := kinds[kind]
	if !ok {
		return fmt.Errorf("unknown kind %q", kind)
	}
	names := []string{name}
	if name == "*" {
		names = s.w.names(kind)
	}
	for _, name := range names {
		var err error
		switch kind {
		case "pod":
			err = s.w.api().CoreV1().Pods("default").Delete(s.w.ctx, name, metav1.DeleteOptions{})
		case "node":
			err = s.w.api().CoreV1().Nodes().Delete(s.w.ctx, name, metav1.DeleteOptions{})
		default:
			err = s.w.custom(gvr).Delete(s.w.ctx, name, metav1.DeleteOptions{})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// patch is kubectl patch --type=merge; the name "*" is all of the kind.
func (s *scenario) patch(kind, name string, rest []string) error {
	gvr, ok := kinds[kind]
	if !ok {
		return fmt.Errorf("unknown kind %q", kind)
	}
	body, sub := []byte(rest[len(rest)-1]), rest[:len(rest)-1]
	if !json.Valid(body) {
		return errors.New("the patch is no JSON")
	}
	names := []string{name}
	if name == "*" {
		names = s.w.names(kind)
	}
	for _, name := range names {
		var err error
		switch kind {
		case "pod":
			_, err = s.w.api().CoreV1().Pods("default").Patch(s.w.ctx, name, types.MergePatchType, body, metav1.PatchOptions{}, sub...)
		case "node":
			_, err = s.w.api().CoreV1().Nodes().Patch(s.w.ctx, name, types.MergePatchType, body, metav1.PatchOptions{}, sub...)
		default:
			_, err = s.w.custom(gvr).Patch(s.w.ctx, name, types.MergePatchType, body, metav1.PatchOptions{}, sub...)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *scenario) settings(patch string) error {
	settings := s.w.aws.Settings()
	if err := decodeStrict(patch, &settings); err != nil {
		return err
	}
	s.w.aws.SetSettings(settings)
	return nil
}

// fault adds a rule of the fake AWS; "clear" removes all.
func (s *scenario) fault(rule string) error {
	if rule == "clear" {
		s.w.aws.DeleteFault("")
		return nil
	}
	var r fakeaws.Rule
	if err := decodeStrict(rule, &r); err != nil {
		return err
	}
	s.w.aws.SetFault(r)
	return nil
}

// refuse has the next creates of a resource answered with Forbidden, as a webhook or a quota does.
func (s *scenario) refuse(resourceName, times, message string) error {
	n, err := strconv.Atoi(times)
	if err != nil {
		return err
	}
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	s.w.refusals = append(s.w.refusals, refusal{resourceName, n, apierrors.NewForbidden(nodeClaims.GroupResource(), "", errors.New(message))})
	return nil
}

// touch wakes the queue n times: labels of nodes change, pods of nobody's come and go.
func (s *scenario) touch(what string, n int) error {
	for i := range n {
		if what == "touch-nodes" {
			for _, name := range s.w.names("node") {
				body := fmt.Sprintf(`{"metadata":{"labels":{"touched":"t%d"}}}`, i)
				if _, err := s.w.api().CoreV1().Nodes().Patch(s.w.ctx, name, types.MergePatchType, []byte(body), metav1.PatchOptions{}); err != nil {
					return err
				}
			}
		} else {
			pods := s.w.api().CoreV1().Pods("default")
			pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("touch-%d", i)}, Spec: v1.PodSpec{SchedulerName: "another", Containers: []v1.Container{{Name: "c"}}}}
			if names := s.w.names("node"); len(names) > 0 {
				pod.Spec.NodeName = names[0] // bound and gone: what wakes pods that wait for room
			}
			if _, err := pods.Create(s.w.ctx, pod, metav1.CreateOptions{}); err != nil {
				return err
			}
			time.Sleep(time.Millisecond)
			if err := pods.Delete(s.w.ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
				return err
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	return nil
}

// require makes NodePool default allow the values of a label only.
func (s *scenario) require(key string, values []string) error {
	pool, err := s.w.object("nodepool", "default")
	if err != nil {
		return err
	}
	path := []string{"spec", "template", "spec", "requirements"}
	have, _, err := unstructured.NestedSlice(pool.Object, path...)
	if err != nil {
		return err
	}
	have = slices.DeleteFunc(have, func(r any) bool { return r.(map[string]any)["key"] == key })
	list := []any{}
	for _, v := range values {
		list = append(list, v)
	}
	have = append(have, map[string]any{"key": key, "operator": "In", "values": list})
	if err := unstructured.SetNestedSlice(pool.Object, have, path...); err != nil {
		return err
	}
	_, err = s.w.custom(nodePools).Update(s.w.ctx, pool, metav1.UpdateOptions{})
	return err
}

// node creates a ready Node that nobody here launched.
func (s *scenario) node(name string, keys map[string]string) error {
	size := v1.ResourceList{v1.ResourceCPU: resource.MustParse("4"), v1.ResourceMemory: resource.MustParse("16Gi"), v1.ResourcePods: resource.MustParse("58")}
	zone := "us-east-1a"
	for key, value := range keys {
		if key == "zone" {
			zone = value
			continue
		}
		q, err := resource.ParseQuantity(value)
		if err != nil {
			return fmt.Errorf("%s=%s: %w", key, value, err)
		}
		size[v1.ResourceName(key)] = q
	}
	return s.w.createCore(&v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			v1.LabelHostname: name, v1.LabelTopologyZone: zone, v1.LabelTopologyRegion: "us-east-1", v1.LabelArchStable: "amd64", v1.LabelOSStable: "linux",
		}},
		Status: v1.NodeStatus{Capacity: size, Allocatable: size, Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}},
	})
}

// interrupt powers the machine off that has the pod.
func (s *scenario) interrupt(pod string) error {
	p, err := s.w.api().CoreV1().Pods("default").Get(s.w.ctx, pod, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, i := range s.w.live() {
		if i.NodeName == p.Spec.NodeName && i.NodeName != "" {
			s.w.aws.Interrupt(i.ID)
			return nil
		}
	}
	return fmt.Errorf("pod %s is on no machine", pod)
}

func decodeStrict(text string, into any) error {
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// names are the names of all objects of a kind, sorted.
func (w *world) names(kind string) []string {
	var out []string
	switch kind {
	case "pod":
		for _, p := range w.pods("") {
			out = append(out, p.Name)
		}
	case "node":
		nodes, err := w.api().CoreV1().Nodes().List(w.ctx, metav1.ListOptions{})
		if err != nil {
			w.T.Fatal(err)
		}
		for _, n := range nodes.Items {
			out = append(out, n.Name)
		}
	default:
		for _, o := range w.list(kinds[kind]) {
			out = append(out, o.GetName())
		}
	}
	slices.Sort(out)
	return out
}

// createCore creates an object of Kubernetes itself.
func (w *world) createCore(obj runtime.Object) error {
	var err error
	core := w.api().CoreV1()
	switch o := obj.(type) {
	case *v1.Pod:
		o.Spec.SchedulerName = map[bool]string{true: "jit-scheduler", false: o.Spec.SchedulerName}[o.Spec.SchedulerName == ""]
		_, err = core.Pods("default").Create(w.ctx, o, metav1.CreateOptions{})
	case *v1.Node:
		_, err = core.Nodes().Create(w.ctx, o, metav1.CreateOptions{})
	case *v1.PersistentVolumeClaim:
		_, err = core.PersistentVolumeClaims("default").Create(w.ctx, o, metav1.CreateOptions{})
	case *v1.PersistentVolume:
		_, err = core.PersistentVolumes().Create(w.ctx, o, metav1.CreateOptions{})
	case *v1.LimitRange:
		_, err = core.LimitRanges("default").Create(w.ctx, o, metav1.CreateOptions{})
	default:
		err = w.createOther(obj)
	}
	return err
}
