// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jit-scheduler/jit-scheduler/provisioner/lifecycle"
)

// written carries out all patches that are due and tells what the pod says then.
func written(t *testing.T, p *Provisioner, pod *v1.Pod) string {
	t.Helper()
	for x, ok := p.hints.next(); ok; x, ok = p.hints.next() {
		p.hints.write(t.Context(), p, x)
	}
	now, err := p.Client.CoreV1().Pods(pod.Namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return now.Status.NominatedNodeName
}

func TestNominationsComeAndGoWithThePlace(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		// nominated is what the pod says before; after is what it says, by others, when the claim is given up.
		nominated, after string
		wantReserved     string
		wantGivenUp      string
	}{
		"a new pod":                            {wantReserved: "c"},
		"a former leader has written the name": {nominated: "c", after: "c", wantReserved: "c"},
		"preemption has nominated it meanwhile": {
			after: "victims", wantReserved: "c", wantGivenUp: "victims",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, _ := newShell(t, nil)
			pod := testPod("a")
			pod.Status.NominatedNodeName = tc.nominated
			if _, err := p.Client.CoreV1().Pods(pod.Namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			store(t, p.Informers.Core().V1().Nodes().Informer().GetStore().Add, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "victims"}})
			store(t, p.pods.GetStore().Add, pod)
			testClaim(p, "c", pod)
			p.Reservation(pod)
			if got := written(t, p, pod); got != tc.wantReserved {
				t.Errorf("reserved: nominated on %q, want %q", got, tc.wantReserved)
			}
			if tc.after != "" {
				now := pod.DeepCopy()
				now.Status.NominatedNodeName = tc.after
				if _, err := p.Client.CoreV1().Pods(pod.Namespace).UpdateStatus(t.Context(), now, metav1.UpdateOptions{}); err != nil {
					t.Fatal(err)
				}
				store(t, p.pods.GetStore().Update, now)
			}
			p.apply(lifecycle.ClaimGone{Name: "c"})
			p.hints.clear(ledgerPod(pod))
			if got := written(t, p, pod); got != tc.wantGivenUp {
				t.Errorf("given up: nominated on %q, want %q", got, tc.wantGivenUp)
			}
			if len(p.hints.said) > 0 {
				t.Errorf("still remembered: %v", p.hints.said)
			}
		})
	}
}
