// SPDX-License-Identifier: Apache-2.0

package judge

// oneInstancePerClaim: over all time at most one instance is launched for a
// claim, and none without one. An instance belongs to the claim in its tag
// karpenter.sh/nodeclaim, else to the claim whose status.providerID names it.
type oneInstancePerClaim struct {
	noStep

	in *input
}

func newOneInstancePerClaim(in *input) invariant { return &oneInstancePerClaim{in: in} }

func (o *oneInstancePerClaim) finish(_ *world, report reporter) {
	firstOf := map[string]string{} // claim → instance
	for _, instance := range o.in.instancesByLaunch() {
		claim := o.in.links.claimOfInstance[instance.ID]
		_, exists := o.in.links.claims[claim]
		switch {
		case exists && firstOf[claim] == "":
			firstOf[claim] = instance.ID
		case exists:
			report(instance.LaunchedAt.Time, instance.ID, "second instance of NodeClaim %s (%s) after %s",
				claim, instance.InstanceType, firstOf[claim])
		case o.in.rules.AllowSwept && instance.Terminated():
		case claim == "":
			report(instance.LaunchedAt.Time, instance.ID, "belongs to no NodeClaim (%s)", instance.InstanceType)
		default:
			report(instance.LaunchedAt.Time, instance.ID, "is tagged for NodeClaim %s, which never existed", claim)
		}
	}
}
