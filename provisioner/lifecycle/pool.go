// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/jit-scheduler/jit-scheduler/provisioner/scheduling"
)

// resourceNodes is the limit on the number of a pool's machines.
const resourceNodes v1.ResourceName = "nodes"

// pool is a NodePool, or the name of one.
type pool struct {
	base
	name   string
	object *karpv1.NodePool
	claims map[*claim]struct{}
	usage  v1.ResourceList
	// A pool whose launches are refused as such opens no claims until blockedUntil; waiting pods are woken then.
	blockedAt, blockedUntil time.Time
	blocks                  int
	message                 string
	// blocked: the end of the block is still to be told.
	blocked bool
	waiting []types.UID
	// overBudget are empty machines that budgets keep for now.
	overBudget []*claim
}

func (s *State) poolAt(name string) *pool {
	p := s.pools[name]
	if p == nil {
		p = &pool{name: name, claims: map[*claim]struct{}{}, usage: v1.ResourceList{}}
		p.id = "pool/" + name
		s.pools[name] = p
	}
	return p
}

func (s *State) onPoolSeen(object *karpv1.NodePool) {
	p := s.poolAt(object.Name)
	p.object = object
	for _, c := range p.ordered() {
		s.mark(c)
	}
}

func (s *State) onPoolGone(name string) {
	p := s.pools[name]
	if p == nil {
		return
	}
	p.object = nil
	for _, c := range p.ordered() {
		if !c.ending() {
			s.giveUp(c, "NodePoolDeleted", "the NodePool "+name+" was deleted")
		}
	}
}

func (p *pool) ordered() []*claim {
	set := make(map[string]*claim, len(p.claims))
	for c := range p.claims {
		set[c.name] = c
	}
	return (*State)(nil).ordered(set)
}

// reconcile wakes who waits for the end of a block.
func (p *pool) reconcile(s *State) {
	if !p.blocked {
		return
	}
	if s.now.Before(p.blockedUntil) {
		s.wakeAt(p, p.blockedUntil)
		return
	}
	p.blocked = false
	s.emit(PoolOpen{Pool: p.name})
	if len(p.waiting) > 0 {
		s.emit(Activate{Pods: p.waiting})
		p.waiting = nil
	}
}

// block keeps a pool from opening claims for a while, longer each time in a row.
func (s *State) block(name, message string) {
	p := s.poolAt(name)
	p.message = message
	if p.blocks > 0 && p.blockedAt.Equal(s.now) {
		return
	}
	d := s.cfg.BlockMin
	for range min(p.blocks, 16) {
		d = min(2*d, s.cfg.BlockMax)
	}
	p.blocks++
	p.blocked = true
	p.blockedAt, p.blockedUntil = s.now, s.now.Add(d)
	s.mark(p)
}

func (s *State) unblock(name string) {
	if p := s.pools[name]; p != nil && p.blocks > 0 {
		p.blocks, p.blockedUntil, p.message = 0, time.Time{}, ""
		s.mark(p)
	}
}

// wait notes a pod that a blocked pool has turned away.
func (s *State) wait(name string, uid types.UID) {
	if p := s.pools[name]; p != nil && s.now.Before(p.blockedUntil) {
		p.waiting = append(p.waiting, uid)
		s.mark(p)
	}
}

// Blocked says until when a pool opens no claims, and why.
func (s *State) Blocked(name string) (until time.Time, message string, ok bool) {
	p := s.pools[name]
	if p == nil || p.blockedUntil.IsZero() {
		return time.Time{}, "", false
	}
	return p.blockedUntil, p.message, true
}

// account keeps the pool's usage: on the way the largest of the options counts, then what the machine is.
func (s *State) account(c *claim) {
	p := s.poolAt(c.pool)
	if c.usage != nil {
		p.usage = scheduling.Sub(p.usage, c.usage)
		c.usage = nil
		delete(p.claims, c)
	}
	if c.dropped {
		return
	}
	p.claims[c] = struct{}{}
	c.usage = scheduling.Add(c.capacity(), v1.ResourceList{resourceNodes: *resource.NewQuantity(1, resource.DecimalSI)})
	p.usage = scheduling.Add(p.usage, c.usage)
}

func (c *claim) capacity() v1.ResourceList {
	if c.own.capacity != nil {
		return c.own.capacity
	}
	if len(c.object.Status.Capacity) > 0 {
		return c.object.Status.Capacity
	}
	most := v1.ResourceList{}
	for i := range c.options {
		if i == 0 || c.options[i].InstanceType != c.options[i-1].InstanceType {
			most = scheduling.Max(most, c.options[i].InstanceType.Capacity)
		}
	}
	if len(most) == 0 {
		return c.object.Spec.Resources.Requests
	}
	return most
}
