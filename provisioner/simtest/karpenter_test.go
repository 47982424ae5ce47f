// SPDX-License-Identifier: Apache-2.0

package simtest

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jit-scheduler/jit-scheduler/plugins/nodeprovisioning"
	"github.com/jit-scheduler/jit-scheduler/provisioner"
)

// karpenterHolder is what the other controller calls itself.
const karpenterHolder = "karpenter-5d8f-abcde_0c1e"

// karpenter has another controller lead: "runs" takes the lease in kube-system and renews it as Karpenter does, "dies"
// renews it no more, "stops" gives it back, "leaves" deletes it.
func (w *world) karpenter(what string) error {
	if w.endKarpenter != nil {
		w.endKarpenter()
		w.endKarpenter = nil
	}
	holder := ""
	switch what {
	case "dies":
		return nil
	case "leaves":
		return w.api().CoordinationV1().Leases("kube-system").Delete(w.ctx, provisioner.KarpenterLease, metav1.DeleteOptions{})
	case "runs":
		holder = karpenterHolder
		ctx, end := context.WithCancel(w.ctx)
		w.endKarpenter = end
		w.running.Go(func() {
			for ctx.Err() == nil {
				if err := w.renew(holder); err != nil {
					w.violate("renewing Karpenter's lease: %v", err)
				}
				select {
				case <-ctx.Done():
				case <-time.After(2 * time.Second):
				}
			}
		})
		return nil
	case "stops":
		return w.renew(holder)
	}
	return fmt.Errorf("karpenter cannot %q", what)
}

func (w *world) renew(holder string) error {
	leases := w.api().CoordinationV1().Leases("kube-system")
	now := metav1.NowMicro()
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: provisioner.KarpenterLease},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &now, LeaseDurationSeconds: new(int32(15))},
	}
	_, err := leases.Update(w.ctx, lease, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = leases.Create(w.ctx, lease, metav1.CreateOptions{})
	}
	return err
}

// held are the Nodes with a hold.
func (w *world) held() []string {
	nodes, err := w.api().CoreV1().Nodes().List(w.ctx, metav1.ListOptions{})
	if err != nil {
		w.T.Fatal(err)
	}
	var out []string
	for i := range nodes.Items {
		if nodeprovisioning.IsHeld(&nodes.Items[i]) {
			out = append(out, nodes.Items[i].Name)
		}
	}
	return out
}
