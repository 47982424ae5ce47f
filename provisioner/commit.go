// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/jit-scheduler/jit-scheduler/provisioner/lifecycle"
	"github.com/jit-scheduler/jit-scheduler/provisioner/plan"
	"github.com/jit-scheduler/jit-scheduler/provisioner/scheduling"
)

// commit writes a plan into the ledger: from here on every pod of it has its place, and the launches are on their
// way. mu is held.
func (p *Provisioner) commit(result plan.Result, took time.Duration) {
	ev := lifecycle.Planned{}
	var placed []*v1.Pod
	for _, j := range result.Joined {
		ev.Joins = append(ev.Joins, lifecycle.Join{Claim: j.Node, Pods: ledgerPods(j.Pods)})
		placed = append(placed, j.Pods...)
		p.logger().Info("Pods reserved on an incoming NodeClaim", "nodeClaim", j.Node, "pods", len(j.Pods))
	}
	groups := map[int]*lifecycle.Group{}
	var order []int
	for i := range result.Opened {
		n := &result.Opened[i]
		g := groups[n.Group]
		if g == nil {
			g = &lifecycle.Group{ID: rand.String(12)}
			groups[n.Group] = g
			order = append(order, n.Group)
		}
		g.Claims = append(g.Claims, p.newClaim(n))
		placed = append(placed, n.Pods...)
	}
	for _, id := range order {
		g := groups[id]
		for i := range g.Claims {
			stamp(g.Claims[i].Object, g.ID, i, len(g.Claims))
		}
		ev.Groups = append(ev.Groups, *g)
	}
	p.logOpened(result, groups, took)
	p.keep(placed)
	if len(placed) > 0 {
		p.applyLocked(ev)
	}
	for _, u := range result.Unplaced {
		for _, pod := range u.Pods {
			if !isExpected(pod) {
				p.waiting[pod.UID] = &waitingPod{epoch: p.epoch, reason: u.Reason, message: u.Message}
			}
		}
	}
	for _, pod := range placed {
		delete(p.waiting, pod.UID)
	}
	for name := range p.pools {
		p.statusDue(name)
	}
}

// newClaim turns a planned node into what the state machine keeps: the NodeClaim to create and the node to show.
func (p *Provisioner) newClaim(n *plan.NewNode) lifecycle.NewClaim {
	pool := p.pools[n.Pool].pool
	name := p.newName(pool.Name)
	class := p.classes[pool.Spec.Template.Spec.NodeClassRef.Name].resolved
	node := n.Node.DeepCopy()
	node.Name = name
	node.UID = types.UID("planned/" + name)
	node.Labels[v1.LabelHostname] = name
	return lifecycle.NewClaim{
		Object:  claimObject(name, pool, class, n),
		Node:    node,
		Options: n.Options,
		Daemons: sum(n.Daemons),
		Pods:    ledgerPods(n.Pods),
	}
}

// maxBase leaves room for the suffix in 63 characters: the name is a label value, the planned node's hostname.
const maxBase = 57

func (p *Provisioner) newName(pool string) string {
	for {
		name := fmt.Sprintf("%.*s-%s", maxBase, pool, rand.String(5))
		if _, taken := p.state.Claim(name); !taken {
			return name
		}
	}
}

// sum is what pods request together.
func sum(pods []*v1.Pod) v1.ResourceList {
	total := v1.ResourceList{}
	for _, pod := range pods {
		total = scheduling.Add(total, scheduling.Requests(pod))
	}
	return total
}

func ledgerPods(pods []*v1.Pod) []lifecycle.Pod {
	out := make([]lifecycle.Pod, 0, len(pods))
	for _, pod := range pods {
		out = append(out, ledgerPod(pod))
	}
	return out
}

// logOpened writes one line per group of claims: what was bought, for whom, at what price, decided how fast.
func (p *Provisioner) logOpened(result plan.Result, groups map[int]*lifecycle.Group, took time.Duration) {
	count, pods := map[int]int{}, map[int]int{}
	for i := range result.Opened {
		count[result.Opened[i].Group]++
		pods[result.Opened[i].Group] += len(result.Opened[i].Pods)
	}
	for i := range result.Opened {
		n := &result.Opened[i]
		if count[n.Group] == 0 {
			continue
		}
		names := make([]string, 0, len(groups[n.Group].Claims))
		for _, c := range groups[n.Group].Claims {
			names = append(names, c.Object.Name)
		}
		best := n.Options[0]
		p.logger().Info("NodeClaims opened", "nodePool", n.Pool, "nodeClaims", strings.Join(names, ","), "pods", pods[n.Group],
			"cheapest", best.InstanceType.Name, "zone", best.Offering.Zone, "capacityType", best.Offering.CapacityType,
			"usdPerHour", float64(count[n.Group])*best.Offering.Price, "options", len(n.Options), "took", took)
		delete(count, n.Group)
	}
}

// describe is the sentence of a nomination: which NodeClaim, which type, at what price.
func (p *Provisioner) describe(c lifecycle.Claim) string {
	s := "reserved on NodeClaim " + c.Name
	if len(c.Options) > 0 {
		o := c.Options[0]
		s += fmt.Sprintf(" (%s in %s, %s, $%.4g/h)", o.InstanceType.Name, o.Offering.Zone, o.Offering.CapacityType, o.Offering.Price)
		if n := len(c.Options) - 1; n > 0 {
			s = strings.TrimSuffix(s, ")") + fmt.Sprintf(" or %d alternatives)", n)
		}
	}
	return cut(s)
}
