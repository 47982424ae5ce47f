// SPDX-License-Identifier: Apache-2.0

package nodeprovisioning_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/jit-scheduler/jit-scheduler/plugins/nodeprovisioning"
	"github.com/jit-scheduler/jit-scheduler/provisioner"
)

func node(cordoned bool, annotations ...string) *v1.Node {
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: v1.NodeSpec{Unschedulable: cordoned}}
	for i := 0; i < len(annotations); i += 2 {
		metav1.SetMetaDataAnnotation(&n.ObjectMeta, annotations[i], annotations[i+1])
	}
	return n
}

func tolerant() *v1.Pod {
	return &v1.Pod{Spec: v1.PodSpec{Tolerations: []v1.Toleration{{Key: v1.TaintNodeUnschedulable, Operator: v1.TolerationOpExists}}}}
}

func TestAdmits(t *testing.T) {
	t.Parallel()
	closed := map[string]provisioner.Gate{"n": provisioner.Closed}
	released := map[string]provisioner.Gate{"n": provisioner.Released}
	planned := node(false, nodeprovisioning.PlannedAnnotation, "true")
	held := node(true, nodeprovisioning.HoldAnnotation, "1767225600")
	kept := node(true, nodeprovisioning.HoldAnnotation, nodeprovisioning.HoldKeep)
	for name, tt := range map[string]struct {
		node   *v1.Node
		pod    *v1.Pod
		paired string
		gates  map[string]provisioner.Gate
		want   string
	}{
		"ready":                        {node: node(false)},
		"paired":                       {node: node(false), paired: "n"},
		"paired with another":          {node: node(false), paired: "m", want: nodeprovisioning.ReasonNotPaired},
		"planned":                      {node: planned, want: nodeprovisioning.ReasonPlanned},
		"planned, even if paired":      {node: planned, paired: "n", want: nodeprovisioning.ReasonPlanned},
		"planned, even if tolerant":    {node: planned, pod: tolerant(), want: nodeprovisioning.ReasonPlanned},
		"closed":                       {node: node(false), gates: closed, want: nodeprovisioning.ReasonClosed},
		"closed, even if paired":       {node: node(false), paired: "n", gates: closed, want: nodeprovisioning.ReasonClosed},
		"cordoned":                     {node: node(true), want: nodeprovisioning.ReasonUnschedulable},
		"cordoned, tolerant":           {node: node(true), pod: tolerant()},
		"cordoned by a person, paired": {node: node(true), paired: "n", want: nodeprovisioning.ReasonUnschedulable},
		"held":                         {node: held, want: nodeprovisioning.ReasonHeld},
		"held, tolerant":               {node: held, pod: tolerant(), want: nodeprovisioning.ReasonHeld},
		"held, paired":                 {node: held, paired: "n"},
		"kept cordon, paired":          {node: kept, paired: "n", want: nodeprovisioning.ReasonUnschedulable},
		"held, nobody left to come":    {node: held, gates: released},
		"cordoned, hold was released":  {node: kept, gates: released, want: nodeprovisioning.ReasonUnschedulable},
		"released hold":                {node: node(false, nodeprovisioning.HoldAnnotation, "1767225600")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := tt.pod
			if pod == nil {
				pod = &v1.Pod{}
			}
			s := nodeprovisioning.Admits(klog.Background(), pod, tt.node, tt.paired, tt.gates)
			if got := s.Message(); got != tt.want {
				t.Errorf("refusal = %q, want %q", got, tt.want)
			}
			if tt.want != "" && s.Code() != fwk.UnschedulableAndUnresolvable {
				t.Errorf("code = %s: preemption would look there", s.Code())
			}
		})
	}
}

func TestHints(t *testing.T) {
	t.Parallel()
	pl := &nodeprovisioning.Plugin{}
	events, err := pl.EventsToRegister(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	hints := map[fwk.EventResource]fwk.QueueingHintFn{}
	for _, e := range events {
		hints[e.Event.Resource] = e.QueueingHintFn
	}
	held := node(true, nodeprovisioning.HoldAnnotation, "1767225600")
	for name, tt := range map[string]struct {
		resource fwk.EventResource
		pod      *v1.Pod
		old, new any
		want     fwk.QueueingHint
	}{
		"node added":              {resource: fwk.Node, new: node(false), want: fwk.Queue},
		"cordoned node added":     {resource: fwk.Node, new: node(true), want: fwk.QueueSkip},
		"held node added":         {resource: fwk.Node, new: held, want: fwk.QueueSkip},
		"hold released":           {resource: fwk.Node, old: held, new: node(false), want: fwk.Queue},
		"hold became a cordon":    {resource: fwk.Node, old: held, new: node(true), want: fwk.QueueSkip},
		"... which pod tolerates": {resource: fwk.Node, pod: tolerant(), old: held, new: node(true), want: fwk.Queue},
		"uncordoned":              {resource: fwk.Node, old: node(true), new: node(false), want: fwk.Queue},
		"still schedulable":       {resource: fwk.Node, old: node(false), new: node(false), want: fwk.QueueSkip},
		"became tolerant":         {resource: fwk.TargetPod, new: tolerant(), want: fwk.Queue},
		"other toleration":        {resource: fwk.TargetPod, new: &v1.Pod{}, want: fwk.QueueSkip},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := tt.pod
			if pod == nil {
				pod = &v1.Pod{}
			}
			got, err := hints[tt.resource](klog.Background(), pod, tt.old, tt.new)
			if err != nil {
				t.Fatal(err)
			}
			if got != tt.want {
				t.Errorf("hint = %v, want %v", got, tt.want)
			}
		})
	}
}
