// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"maps"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
)

// claimTag is written on an instance when its node has registered.
const claimTag = "karpenter.sh/nodeclaim"

// surplus is an instance that no claim has: it is terminated.
type surplus struct {
	base
	providerID string
}

func (x *surplus) reconcile(s *State) {
	s.send(x, Terminate{ProviderID: x.providerID}, "", s.cfg.ActionTimeout)
}

// late takes an answer that nobody waits for: what no claim has is surplus.
func (s *State) late(instances []cloudprovider.Instance) {
	for i := range instances {
		if alive(&instances[i]) && s.byProvider[instances[i].ProviderID] == nil {
			s.tooMany(instances[i].ProviderID)
		}
	}
}

func (s *State) tooMany(providerID string) {
	if s.surplus[providerID] != nil {
		return
	}
	x := &surplus{providerID: providerID}
	x.id = "surplus/" + providerID
	s.surplus[providerID] = x
	s.mark(x)
}

func alive(inst *cloudprovider.Instance) bool {
	return inst.State != "terminated" && inst.State != "shutting-down"
}

// match gives instances to claims: what a tag or the claim itself says, then by ordinal, those that are wanted first.
func (s *State) match(g *group, claims []*claim, instances []cloudprovider.Instance) {
	var free []*cloudprovider.Instance
	for i := range instances {
		inst := &instances[i]
		if !alive(inst) || s.surplus[inst.ProviderID] != nil {
			continue
		}
		if c := s.byProvider[inst.ProviderID]; c != nil {
			s.refresh(c, inst)
			continue
		}
		if c := s.claims[inst.Tags[claimTag]]; c != nil && c.group == g && !c.launched() {
			s.launched(c, inst)
			continue
		}
		free = append(free, inst)
	}
	for _, unwanted := range []bool{false, true} {
		for _, c := range claims {
			if len(free) > 0 && !c.launched() && c.ending() == unwanted {
				s.launched(c, free[0])
				free = free[1:]
			}
		}
	}
	for _, inst := range free {
		s.tooMany(inst.ProviderID)
	}
}

// refresh completes a claim found at start from what the cloud says of its instance.
func (s *State) refresh(c *claim, inst *cloudprovider.Instance) {
	if c.own.providerID == "" {
		c.describe(inst, c.typeOf(inst))
		s.mark(c)
	}
}

// typeOf finds the instance's type among the options.
func (c *claim) typeOf(inst *cloudprovider.Instance) *cloudprovider.InstanceType {
	for i := range c.options {
		if t := c.options[i].InstanceType; t.Name == inst.InstanceType {
			return t
		}
	}
	return nil
}

// launched gives the claim its machine; the planned node becomes concrete.
func (s *State) launched(c *claim, inst *cloudprovider.Instance) {
	c.providerID = inst.ProviderID
	s.byProvider[c.providerID] = c
	c.launchedAt = s.now
	for i := range c.options {
		o := &c.options[i]
		if o.InstanceType.Name == inst.InstanceType && o.Offering.Zone == inst.Zone && o.Offering.CapacityType == inst.CapacityType {
			c.price = o.Offering.Price
		}
	}
	t := c.typeOf(inst)
	c.describe(inst, t)
	s.setTrue(c, karpv1.ConditionTypeLaunched)
	s.setCondition(c, karpv1.ConditionTypeRegistered, metav1.ConditionUnknown, "NodeNotFound", "Node not registered with cluster")
	s.setCondition(c, karpv1.ConditionTypeInitialized, metav1.ConditionUnknown, "NodeNotFound", "Node not registered with cluster")
	s.unblock(c.pool)
	if !c.launchCounted {
		c.launchCounted = true
		s.counters.Launched++
	}
	s.account(c)
	s.mark(c)
	if c.planned == nil || c.ending() {
		return
	}
	node := c.planned.DeepCopy()
	if node.Labels == nil {
		node.Labels = map[string]string{}
	}
	maps.Copy(node.Labels, c.own.labels)
	if t != nil {
		node.Status.Capacity, node.Status.Allocatable = t.For(c.object.Spec.Resources.Requests)
		c.room = node.Status.Allocatable
	}
	s.replan(c, node)
	s.refit(c, "the machine launched for "+c.name+" is smaller than planned")
}

// replan replaces the planned node.
func (s *State) replan(c *claim, node *v1.Node) {
	c.planned = node
	s.emit(UpdatePlannedNode{Node: node})
}
