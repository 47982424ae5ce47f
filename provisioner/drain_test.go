// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"

	"github.com/jit-scheduler/jit-scheduler/provisioner/lifecycle"
)

func podOn(name string, change func(*v1.Pod)) *v1.Pod {
	pod := testPod(name)
	pod.Spec.NodeName = "n"
	if change != nil {
		change(pod)
	}
	return pod
}

func deletedAt(at time.Time) func(*v1.Pod) {
	return func(pod *v1.Pod) { pod.DeletionTimestamp = &metav1.Time{Time: at} }
}

func TestDrainGoesTierByTier(t *testing.T) {
	t.Parallel()
	daemon := func(pod *v1.Pod) {
		controller := true
		pod.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Name: "d", UID: "d", Controller: &controller}}
	}
	critical := func(pod *v1.Pod) { pod.Spec.PriorityClassName = "system-node-critical" }
	kept := func(pod *v1.Pod) { pod.Annotations = map[string]string{"karpenter.sh/do-not-disrupt": "true"} }
	patient := func(pod *v1.Pod) {
		pod.Spec.Tolerations = []v1.Toleration{{Key: "karpenter.sh/disrupted", Operator: v1.TolerationOpExists}}
	}
	now := time.Now()
	cases := map[string]struct {
		pods          []*v1.Pod
		deadline      time.Time
		wantEvicted   []string
		wantDeleted   []string
		wantRemaining int
	}{
		"workloads first":                    {pods: []*v1.Pod{podOn("a", nil), podOn("b", daemon), podOn("c", critical)}, wantEvicted: []string{"a"}, wantRemaining: 3},
		"then DaemonSets":                    {pods: []*v1.Pod{podOn("b", daemon), podOn("c", critical)}, wantEvicted: []string{"b"}, wantRemaining: 2},
		"critical ones last":                 {pods: []*v1.Pod{podOn("c", critical)}, wantEvicted: []string{"c"}, wantRemaining: 1},
		"a terminating one is waited for":    {pods: []*v1.Pod{podOn("a", deletedAt(now.Add(time.Minute))), podOn("b", daemon)}, wantRemaining: 2},
		"one whose kubelet is gone is not":   {pods: []*v1.Pod{podOn("a", deletedAt(now.Add(-time.Hour)))}},
		"one that wants to stay to the end":  {pods: []*v1.Pod{podOn("a", patient)}},
		"a finished one":                     {pods: []*v1.Pod{podOn("a", func(pod *v1.Pod) { pod.Status.Phase = v1.PodSucceeded })}},
		"do-not-disrupt is waited for":       {pods: []*v1.Pod{podOn("a", kept)}, wantRemaining: 1},
		"do-not-disrupt, and no time left":   {pods: []*v1.Pod{podOn("a", kept)}, deadline: now.Add(10 * time.Second), wantDeleted: []string{"a"}, wantRemaining: 1},
		"time enough":                        {pods: []*v1.Pod{podOn("a", nil)}, deadline: now.Add(time.Hour), wantEvicted: []string{"a"}, wantRemaining: 1},
		"it ends in time, do not hurry":      {pods: []*v1.Pod{podOn("a", deletedAt(now.Add(5*time.Second)))}, deadline: now.Add(10 * time.Second), wantRemaining: 1},
		"its grace is longer than there is":  {pods: []*v1.Pod{podOn("a", deletedAt(now.Add(time.Hour)))}, deadline: now.Add(10 * time.Second), wantDeleted: []string{"a"}, wantRemaining: 1},
		"pods of other nodes are left alone": {pods: []*v1.Pod{podOn("a", func(pod *v1.Pod) { pod.Spec.NodeName = "other" })}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, _ := newShell(t, nil)
			client := p.Client.(*fake.Clientset)
			var evicted, deleted []string
			client.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
				evicted = append(evicted, a.(clienttesting.CreateAction).GetObject().(*policyv1.Eviction).Name)
				return true, nil, nil
			})
			client.PrependReactor("delete", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
				deleted = append(deleted, a.(clienttesting.DeleteAction).GetName())
				return true, nil, nil
			})
			for _, pod := range tc.pods {
				store(t, p.pods.GetIndexer().Add, pod)
			}
			a := lifecycle.Drain{Node: "n"}
			if !tc.deadline.IsZero() {
				a.Deadline = tc.deadline.Unix()
			}
			evs, err := p.drain(t.Context(), a)
			if err != nil {
				t.Fatal(err)
			}
			if got := evs[1].(lifecycle.Drained).Remaining; got != tc.wantRemaining {
				t.Errorf("%d remain, want %d", got, tc.wantRemaining)
			}
			if !slices.Equal(evicted, tc.wantEvicted) || !slices.Equal(deleted, tc.wantDeleted) {
				t.Errorf("evicted %v, deleted %v; want %v, %v", evicted, deleted, tc.wantEvicted, tc.wantDeleted)
			}
		})
	}
}

// A disruption budget may keep many pods: people hear of it once a pass, not once a pod.
func TestARefusedDrainIsSaidOnce(t *testing.T) {
	t.Parallel()
	p, _ := newShell(t, nil)
	p.Client.(*fake.Clientset).PrependReactor("create", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewTooManyRequests("disruption budget", 0)
	})
	store(t, p.pods.GetIndexer().Add, podOn("a", nil), podOn("b", nil))
	if _, err := p.drain(t.Context(), lifecycle.Drain{Node: "n"}); err != nil {
		t.Fatal(err)
	}
	if got := len(p.Recorder.(*events.FakeRecorder).Events); got != 1 {
		t.Errorf("%d events, want 1", got)
	}
}
