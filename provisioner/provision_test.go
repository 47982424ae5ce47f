// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"fmt"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jit-scheduler/jit-scheduler/provisioner/lifecycle"
	"github.com/jit-scheduler/jit-scheduler/provisioner/plan"
)

// Whatever is decided for a pod whose deletion was seen already stays for ever: no later event takes it back.
func TestNothingIsDecidedForAPodThatIsGone(t *testing.T) {
	t.Parallel()
	now := metav1.Now()
	cases := map[string]struct {
		stored *v1.Pod
		want   Outcome
	}{
		"it waits":          {stored: testPod("a"), want: Refused},
		"it is gone":        {want: Retry},
		"another came":      {stored: &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a", UID: "other"}}, want: Retry},
		"it is about to go": {stored: &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a", UID: "uid-a", DeletionTimestamp: &now}}, want: Retry},
		"it is bound":       {stored: &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a", UID: "uid-a"}, Spec: v1.PodSpec{NodeName: "n"}}, want: Retry},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, _ := newShell(t, nil)
			if tc.stored != nil {
				store(t, p.pods.GetStore().Add, tc.stored)
			}
			d := p.Provision(testPod("a"), "jit-scheduler", false)
			if d.Outcome != tc.want || len(p.waiting) > 0 != (tc.want == Refused) {
				t.Errorf("Provision = %+v with %d waiting, want outcome %d", d, len(p.waiting), tc.want)
			}
		})
	}
}

func TestRefusalsAreRepeatedUntilSomethingChanges(t *testing.T) {
	t.Parallel()
	p, q := newShell(t, nil)
	pod := testPod("a")
	store(t, p.pods.GetStore().Add, pod)
	p.synced = false
	if d := p.Provision(pod, "jit-scheduler", false); d.Reason != "NotSynced" {
		t.Fatalf("Provision = %+v, want NotSynced", d)
	}
	p.synced = true
	if d := p.Provision(pod, "jit-scheduler", false); d.Reason != "NotSynced" {
		t.Errorf("Provision = %+v: planned again though nothing has changed", d)
	}
	p.wakeWaiting(false)
	if len(q.activated) > 0 {
		t.Errorf("woke %v though nothing has changed", q.activated)
	}
	p.changed()
	p.wakeWaiting(false)
	if !slices.Equal(q.activated, []types.UID{pod.UID}) {
		t.Errorf("woke %v, want the pod", q.activated)
	}
	if d := p.Provision(pod, "jit-scheduler", false); d.Reason != plan.ReasonNoPool {
		t.Errorf("Provision = %+v, want %s", d, plan.ReasonNoPool)
	}
	p.podGone(pod)
	if len(p.waiting) > 0 {
		t.Errorf("still waiting: %v", p.waiting)
	}
}

// The end of a pool's block is no change of the world that the epoch counts: the woken pod must be planned all the same.
func TestAWokenPodIsPlannedAgain(t *testing.T) {
	t.Parallel()
	p, q := newShell(t, nil)
	pods := map[string]*waitingPod{"refused": {reason: "NodePoolNotReady"}, "retrying": {retries: 2}}
	for uid, w := range pods {
		p.waiting[types.UID(uid)] = w
	}
	p.carryOut([]lifecycle.Action{lifecycle.Activate{Pods: []types.UID{"refused", "retrying", expectedPrefix + "rs/1"}}})
	if p.waiting["refused"] != nil || p.waiting["retrying"] != pods["retrying"] {
		t.Errorf("waiting = %v, want retrying alone", p.waiting)
	}
	if want := []types.UID{"refused", "retrying"}; !slices.Equal(q.activated, want) {
		t.Errorf("activated %v, want %v", q.activated, want)
	}
}

func TestAPodWithoutAPlaceDoesNotSpin(t *testing.T) {
	t.Parallel()
	p, _ := newShell(t, nil)
	pod := testPod("a")
	for i := range maxRetries {
		if d := p.retry(pod); d.Outcome != Retry {
			t.Fatalf("retry %d = %+v", i, d)
		}
	}
	if d := p.retry(pod); d.Outcome != Refused {
		t.Errorf("retry = %+v, want a refusal", d)
	}
	p.changed()
	if d := p.retry(pod); d.Outcome != Retry {
		t.Errorf("retry after a change = %+v", d)
	}
}

func TestLaunchWaitHearsWhatCameOfTheClaim(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		happens func(*Provisioner)
		want    string
	}{
		"launched": {happens: func(p *Provisioner) { handOver(p, "c") }},
		"refused":  {happens: func(p *Provisioner) { p.apply(lifecycle.ClaimGone{Name: "c"}) }, want: "the NodeClaim c is being deleted"},
		"one of its pods found room elsewhere": {happens: func(p *Provisioner) {
			p.apply(lifecycle.PodsOffered{Pods: []types.UID{"uid-a"}})
			handOver(p, "c")
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, _ := newShell(t, nil)
			testClaim(p, "c", testPod("a"), testPod("b"))
			tc.happens(p)
			err := p.awaitLaunch(t.Context(), "c")
			if got := fmt.Sprint(err); tc.want == "" && err != nil || tc.want != "" && got != tc.want {
				t.Errorf("awaitLaunch = %s, want %q", got, tc.want)
			}
		})
	}
}

func TestReasonsAreForgottenWithTheirClaim(t *testing.T) {
	t.Parallel()
	p, _ := newShell(t, nil)
	testClaim(p, "c", testPod("a"))
	p.failures["c"], p.failures["gone"] = "why", "why"
	p.expire()
	if len(p.failures) != 1 || p.failures["c"] == "" {
		t.Errorf("failures = %v, want c's", p.failures)
	}
}
