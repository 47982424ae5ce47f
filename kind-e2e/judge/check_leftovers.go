// SPDX-License-Identifier: Apache-2.0

package judge

import "math"

// leftovers: with Rules.WantNothingLeft there is nothing at the end that costs
// money or clutters the account.
type leftovers struct {
	noStep

	in *input
}

func newLeftovers(in *input) invariant { return &leftovers{in: in} }

func (l *leftovers) finish(w *world, report reporter) {
	if !l.in.rules.WantNothingLeft {
		return
	}
	for _, instance := range l.in.instances {
		if !instance.Terminated() {
			report(l.in.end, instance.ID, "instance is left: %s, %s", instance.InstanceType, instance.State)
		}
	}
	for name, node := range w.nodes {
		life := l.in.links.nodeAt(name, math.MaxUint64)
		if _, ofPool := node.Labels[labelNodePool]; ofPool || life.claim != "" {
			report(l.in.end, name, "Node is left")
		}
	}
	for name := range w.claims {
		report(l.in.end, name, "NodeClaim is left")
	}
	for _, template := range l.in.launchTemplates {
		report(l.in.end, template.Name, "launch template is left")
	}
}
