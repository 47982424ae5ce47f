// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
)

// numbered returns a bound pod that was created second seconds after the first.
func numbered(second int, requests corev1.ResourceList, change func(*corev1.Pod)) *corev1.Pod {
	return boundPod(requests, func(p *corev1.Pod) {
		p.Name = fmt.Sprintf("p%d", second)
		p.UID = types.UID(p.Name)
		p.CreationTimestamp = metav1.NewTime(time.Date(2026, 1, 1, 0, 0, second, 0, time.UTC))
		if change != nil {
			change(p)
		}
	})
}

func annotated(p *corev1.Pod) { p.Annotations = map[string]string{AnnotationAdmitted: "true"} }

// stopping makes a running pod one that is being deleted, with the rest of its
// grace period.
func stopping(grace time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		annotated(p)
		// The time in a synctest bubble, where the tests run.
		at := metav1.NewTime(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Add(grace))
		p.DeletionTimestamp = &at
	}
}

// outcome is what can be seen of a pod: "admitted", its reason, or "".
func outcome(p *corev1.Pod) string {
	switch {
	case p.Status.Phase == corev1.PodFailed:
		return p.Status.Reason
	case p.Annotations[AnnotationAdmitted] == "true":
		return "admitted"
	default:
		return ""
	}
}

func TestKubelets(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		objects []runtime.Object
		// later happens when everything has been decided about objects.
		later func(ctx context.Context, t *testing.T, client *fake.Clientset)
		want  map[string]string
	}{
		"a pod that fits": {
			objects: []runtime.Object{playedNode(nil), numbered(1, list("cpu", "1"), nil)},
			want:    map[string]string{"p1": "admitted"},
		},
		"the oldest pods get the room": {
			objects: []runtime.Object{
				playedNode(nil), numbered(3, list("cpu", "3"), nil), numbered(1, list("cpu", "3"), nil), numbered(2, list("cpu", "1"), nil),
			},
			want: map[string]string{"p1": "admitted", "p2": "admitted", "p3": "OutOfcpu"},
		},
		"those that run already keep theirs": {
			objects: []runtime.Object{
				playedNode(nil), numbered(1, list("cpu", "3"), nil), numbered(2, list("cpu", "3"), annotated),
			},
			want: map[string]string{"p1": "OutOfcpu", "p2": "admitted"},
		},
		"deleted pods go, those that ignore SIGTERM later": {
			objects: []runtime.Object{
				playedNode(nil), numbered(1, nil, stopping(0)), numbered(2, nil, stopping(0)), numbered(3, nil, stopping(time.Second)),
				numbered(4, nil, func(p *corev1.Pod) { stopping(time.Minute)(p); p.Annotations[AnnotationIgnoresSIGTERM] = "" }),
				numbered(5, nil, func(p *corev1.Pod) { stopping(time.Second)(p); p.Annotations[AnnotationIgnoresSIGTERM] = "" }),
			},
			want: map[string]string{"p4": "admitted"},
		},
		"deleted pods of another kubelet stay": {
			objects: []runtime.Object{
				playedNode(func(n *corev1.Node) { n.Annotations = nil }), numbered(1, nil, stopping(0)),
			},
			want: map[string]string{"p1": "admitted"},
		},
		"one that ended has none, one that is stopping has": {
			objects: []runtime.Object{
				playedNode(nil),
				numbered(1, list("cpu", "3"), func(p *corev1.Pod) { annotated(p); p.Status.Phase = corev1.PodSucceeded }),
				numbered(2, list("cpu", "2"), func(p *corev1.Pod) { stopping(time.Minute)(p); p.Annotations[AnnotationIgnoresSIGTERM] = "" }),
				numbered(3, list("cpu", "2"), nil),
				numbered(4, list("cpu", "1"), nil),
			},
			want: map[string]string{"p1": "admitted", "p2": "admitted", "p3": "admitted", "p4": "OutOfcpu"},
		},
		"a Node with a kubelet of its own": {
			objects: []runtime.Object{
				playedNode(func(n *corev1.Node) { n.Annotations = nil }), numbered(1, list("cpu", "9"), nil),
			},
			want: map[string]string{"p1": ""},
		},
		"not bound": {
			objects: []runtime.Object{
				playedNode(nil), numbered(1, nil, func(p *corev1.Pod) { p.Spec.NodeName = "" }),
			},
			want: map[string]string{"p1": ""},
		},
		"the Node comes after the pod": {
			objects: []runtime.Object{numbered(1, list("cpu", "5"), nil)},
			later: func(ctx context.Context, t *testing.T, client *fake.Clientset) {
				if _, err := client.CoreV1().Nodes().Create(ctx, playedNode(nil), metav1.CreateOptions{}); err != nil {
					t.Error(err)
				}
			},
			want: map[string]string{"p1": "OutOfcpu"},
		},
		"room is used again": {
			objects: []runtime.Object{playedNode(nil), numbered(1, list("cpu", "4"), nil)},
			later: func(ctx context.Context, t *testing.T, client *fake.Clientset) {
				pods := client.CoreV1().Pods("default")
				if err := pods.Delete(ctx, "p1", metav1.DeleteOptions{}); err != nil {
					t.Error(err)
				}
				synctest.Wait()
				if _, err := pods.Create(ctx, numbered(2, list("cpu", "4"), nil), metav1.CreateOptions{}); err != nil {
					t.Error(err)
				}
			},
			want: map[string]string{"p2": "admitted"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				client := fake.NewClientset(tc.objects...)
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() {
					defer close(done)
					newKubelets(client).run(ctx)
				}()
				settle()
				if tc.later != nil {
					tc.later(ctx, t, client)
					settle()
				}
				pods, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
				if err != nil {
					t.Fatal(err)
				}
				got := map[string]string{}
				for i := range pods.Items {
					got[pods.Items[i].Name] = outcome(&pods.Items[i])
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("outcomes (-want +got):\n%s", diff)
				}
				cancel()
				<-done
			})
		})
	}
}

// settle lets informers, which poll until they are synced, and workers finish.
func settle() {
	time.Sleep(5 * time.Second)
	synctest.Wait()
}
