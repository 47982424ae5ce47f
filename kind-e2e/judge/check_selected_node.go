// SPDX-License-Identifier: Apache-2.0

package judge

const annotationSelectedNode = "volume.kubernetes.io/selected-node"

// selectedNode: a claim for a volume never names a NodeClaim, nor anything else
// that is no Node, as the node to make the volume for.
type selectedNode struct {
	noFinish

	in *input
}

func newSelectedNode(in *input) invariant { return &selectedNode{in: in} }

func (s *selectedNode) step(_ *world, c *change, report reporter) {
	if c.PVC == nil || c.Op == Deleted {
		return
	}
	name, ok := c.PVC.Annotations[annotationSelectedNode]
	if !ok || len(s.in.links.nodes[name]) > 0 {
		return
	}
	what := "no Node of that name ever existed"
	if _, claim := s.in.links.claims[name]; claim {
		what = "which is a NodeClaim"
	}
	report(c.Time, c.PVC.Namespace+"/"+c.PVC.Name, "%s is %s: %s", annotationSelectedNode, name, what)
}
