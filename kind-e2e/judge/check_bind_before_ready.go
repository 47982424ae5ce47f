// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// goneGrace is how long after a node's deletion any scheduler may still bind to
// it, because the news is on its way.
const goneGrace = time.Second

// bindBeforeReady: no pod is bound to a node that never was Ready before, and
// none to a name that is no node. DaemonSet pods and pods that tolerate
// node.kubernetes.io/not-ready:NoSchedule need the node, but not Ready.
type bindBeforeReady struct {
	noFinish

	wasReady map[types.UID]bool
	gone     map[string]time.Time
}

func newBindBeforeReady(*input) invariant {
	return &bindBeforeReady{wasReady: map[types.UID]bool{}, gone: map[string]time.Time{}}
}

func (b *bindBeforeReady) step(w *world, c *change, report reporter) {
	switch {
	case c.Node != nil && c.Op == Deleted:
		b.gone[c.Node.Name] = c.Time
	case c.Node != nil && ready(c.Node):
		b.wasReady[c.Node.UID] = true
	case c.bound():
		b.judge(w, c, report)
	}
}

func (b *bindBeforeReady) judge(w *world, c *change, report reporter) {
	name := c.Pod.Spec.NodeName
	node := w.nodes[name]
	if node == nil {
		gone, existed := b.gone[name]
		switch {
		case !existed:
			report(c.Time, podName(c.Pod), "bound to %s, which is no node (resourceVersion %d)", name, c.revision)
		case c.Time.Sub(gone) > goneGrace:
			report(c.Time, podName(c.Pod), "bound to %s %s after that node was deleted", name, c.Time.Sub(gone))
		}
		return
	}
	if b.wasReady[node.UID] || ofDaemonSet(c.Pod) || tolerates(c.Pod, corev1.TaintNodeNotReady) {
		return
	}
	report(c.Time, podName(c.Pod), "bound to %s before it was Ready (resourceVersion %d)", name, c.revision)
}
