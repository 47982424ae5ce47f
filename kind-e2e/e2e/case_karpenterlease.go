// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/judge"
)

var karpenterLeaseCase = Case{
	Name:  "karpenter-lease",
	About: "while a Karpenter holds its lease nothing is launched or removed; event and readiness say so; it takes over when the lease lapses or goes",
	Rules: judge.Rules{AllowUnlaunched: true},
	Run:   runKarpenterLease,
}

const (
	karpenterLease  = "karpenter-leader-election"
	karpenterHolder = "karpenter-5d8f-abcde_0c1e"
	karpenterReason = "KarpenterRunning"
	// karpenterTime is how long its lease is good for.
	karpenterTime = 15 * time.Second
)

func runKarpenterLease(ctx context.Context, t *Trial) error {
	defer func() { _ = t.dropKarpenterLease(context.WithoutCancel(ctx)) }()
	stop := t.holdLease(ctx)
	if err := t.AddNode(ctx, "existing", "4"); err != nil {
		return err
	}
	if err := t.Buyable(ctx); err != nil {
		return err
	}
	if err := t.Start(ctx); err != nil {
		return err
	}
	if err := t.waitReadiness(ctx, http.StatusInternalServerError, karpenterHolder, "kube-system/"+karpenterLease); err != nil {
		return err
	}
	if err := t.Create(ctx, t.Pod("fits", "fits", "1"), t.Pod("needs", "needs", "20")); err != nil {
		return err
	}
	if err := t.WaitBound(ctx, "fits", 1, settleTimeout); err != nil {
		return err
	}
	if err := t.saidOfKarpenter(ctx, "needs"); err != nil {
		return err
	}
	stop() // as a Karpenter that is killed: the lease stays, and lapses
	if err := t.WaitBound(ctx, "needs", 1, karpenterTime+settleTimeout); err != nil {
		return fmt.Errorf("after the lease has lapsed: %w", err)
	}
	if err := t.waitReadiness(ctx, http.StatusOK); err != nil {
		return err
	}
	return t.karpenterComesBack(ctx)
}

// karpenterComesBack has it stand down while it leads: no machine more, and none less although no pod needs it.
func (t *Trial) karpenterComesBack(ctx context.Context) error {
	machines := 0
	if err := t.Wait(ctx, settleTimeout, func(v *judge.View) string { machines = len(v.Instances); return "" }); err != nil {
		return err
	}
	stop := t.holdLease(ctx)
	defer stop()
	if err := t.waitReadiness(ctx, http.StatusInternalServerError, karpenterHolder); err != nil {
		return err
	}
	if err := t.Create(ctx, t.Pod("more", "more", "20")); err != nil {
		return err
	}
	if err := t.saidOfKarpenter(ctx, "more"); err != nil {
		return err
	}
	err := t.Stays(ctx, 5*time.Second, func(v *judge.View) string {
		if len(v.Instances) != machines {
			return fmt.Sprintf("%d machines while Karpenter held its lease, %d before", len(v.Instances), machines)
		}
		return ""
	})
	if err != nil {
		return err
	}
	stop()
	if err := t.dropKarpenterLease(ctx); err != nil {
		return err
	}
	if err := t.WaitBound(ctx, "more", 1, settleTimeout); err != nil {
		return fmt.Errorf("after the lease was deleted: %w", err)
	}
	return nil
}

// saidOfKarpenter waits for the event on the pod and on the NodePool.
func (t *Trial) saidOfKarpenter(ctx context.Context, pod string) error {
	return poll(ctx, settleTimeout, func(ctx context.Context) (string, error) {
		list, err := t.Kube.EventsV1().Events("").List(ctx, metav1.ListOptions{})
		if err != nil {
			return "", err
		}
		said := map[string]bool{}
		for i := range list.Items {
			ev := &list.Items[i]
			if ev.Reason == karpenterReason && ev.Type == v1.EventTypeWarning && strings.Contains(ev.Note, karpenterHolder) {
				said[ev.Regarding.Kind+"/"+ev.Regarding.Name] = true
			}
		}
		for _, who := range []string{"Pod/" + pod, "NodePool/default"} {
			if !said[who] {
				return fmt.Sprintf("%s has no event %s", who, karpenterReason), nil
			}
		}
		return "", nil
	})
}

// holdLease renews Karpenter's lease as Karpenter does, until the returned function is called.
func (t *Trial) holdLease(ctx context.Context) (stop func()) {
	ctx, stop = context.WithCancel(ctx)
	renew := func() {
		if err := t.renewLease(ctx); err != nil && ctx.Err() == nil {
			t.Say("    renewing Karpenter's lease: %v", err)
		}
	}
	renew()
	go func() {
		tick := time.NewTicker(2 * time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				renew()
			}
		}
	}()
	return stop
}

func (t *Trial) renewLease(ctx context.Context) error {
	leases := t.Kube.CoordinationV1().Leases(productNamespace)
	holder, now, seconds := karpenterHolder, metav1.NowMicro(), int32(karpenterTime/time.Second)
	spec := coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &now, LeaseDurationSeconds: &seconds}
	lease, err := leases.Get(ctx, karpenterLease, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: karpenterLease}, Spec: spec}, metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	lease.Spec = spec
	_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
	return err
}

func (t *Trial) dropKarpenterLease(ctx context.Context) error {
	err := t.Kube.CoordinationV1().Leases(productNamespace).Delete(ctx, karpenterLease, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
