// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// orphanPatience is how long a node may be without a claim before the cloud is asked whether it still has the
// machine, and between two such questions: the answer to a launch may come later than its machine.
const orphanPatience = time.Minute

// ours says that the node is, or was to be, a NodeClaim's.
func ours(n *v1.Node) bool {
	_, ok := n.Labels[karpv1.NodePoolLabelKey]
	return n.Spec.ProviderID != "" && (ok || hasTaint(n, &karpv1.UnregisteredNoExecuteTaint))
}

// reconcile removes a node that has neither a claim nor a machine: it joined late, or its finalizers were cut. A
// machine without a claim is left to the sweep.
func (n *node) reconcile(s *State) {
	if n.object == nil || s.claimOf(n) != nil || !ours(n.object) {
		return
	}
	id := n.object.Spec.ProviderID
	if _, ok := s.ended[id]; !ok {
		if n.orphanSince.IsZero() {
			n.orphanSince = s.now
		}
		if at := n.orphanSince.Add(orphanPatience); s.now.Before(at) {
			s.wakeAt(n, at)
			return
		}
		if s.send(n, AwaitTermination{ProviderID: id}, "", s.cfg.ActionTimeout) {
			n.orphanSince = s.now
		}
		return
	}
	if n.object.DeletionTimestamp == nil {
		s.send(n, DeleteNode{Node: n.name, UID: n.object.UID}, "", s.cfg.ActionTimeout)
	}
	if slices.Contains(n.object.Finalizers, karpv1.TerminationFinalizer) {
		s.send(n, RemoveNodeFinalizer{Node: n.name, UID: n.object.UID}, "", s.cfg.ActionTimeout)
	}
}

// adoptOrphan has a node whose claim is gone, and which is being deleted, drained and let go as well.
func (s *State) adoptOrphan(n *node) {
	if n.object == nil || n.object.DeletionTimestamp == nil || n.object.Spec.ProviderID == "" ||
		s.byProvider[n.object.Spec.ProviderID] != nil || s.claims[n.name] != nil ||
		!slices.Contains(n.object.Finalizers, karpv1.TerminationFinalizer) {
		return
	}
	if _, ended := s.ended[n.object.Spec.ProviderID]; ended {
		return // nothing to drain: reconcile lets it go
	}
	c := s.newClaim(&karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: n.name, Labels: map[string]string{
		karpv1.NodePoolLabelKey: n.object.Labels[karpv1.NodePoolLabelKey],
	}}})
	c.objectGone, c.reason, c.restored = true, "Orphaned", true
	c.providerID = n.object.Spec.ProviderID
	s.byProvider[c.providerID] = c
	s.mark(c)
}
