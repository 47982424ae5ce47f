// SPDX-License-Identifier: Apache-2.0

package judge

// claimNeverUsed: every NodeClaim held a pod that is not a DaemonSet's at some
// time. A claim still on its way at the end counts as used while a pod is
// nominated to it.
type claimNeverUsed struct {
	in   *input
	used map[string]bool
}

func newClaimNeverUsed(in *input) invariant { return &claimNeverUsed{in: in, used: map[string]bool{}} }

func (u *claimNeverUsed) step(_ *world, c *change, _ reporter) {
	if c.Pod == nil || c.Pod.Spec.NodeName == "" || ofDaemonSet(c.Pod) {
		return
	}
	if node := u.in.links.nodeAt(c.Pod.Spec.NodeName, c.revision); node != nil {
		u.used[node.claim] = true
	}
}

func (u *claimNeverUsed) finish(w *world, report reporter) {
	for _, pod := range w.pods {
		if pod.Spec.NodeName == "" && w.claims[pod.Status.NominatedNodeName] != nil {
			u.used[pod.Status.NominatedNodeName] = true
		}
	}
	launched := map[string]bool{}
	for _, claim := range u.in.links.claimOfInstance {
		launched[claim] = true
	}
	for name, life := range u.in.links.claims {
		if u.used[name] || (u.in.rules.AllowUnlaunched && !launched[name]) {
			continue
		}
		report(life.seen, name, "never held a pod (instance launched: %t, still there: %t)",
			launched[name], life.deleted.IsZero())
	}
}
