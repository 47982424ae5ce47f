// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"strconv"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// BenchmarkPlan commits a plan of 2,000 pods on 200 claims, asks for each pod's place and for the open claims.
func BenchmarkPlan(b *testing.B) {
	for b.Loop() {
		s := New(Config{})
		now := time.Unix(0, 0)
		s.Apply(now, Synced{})
		s.Apply(now, Planned{Groups: []Group{bigGroup(200, 10)}})
		for i := range 2000 {
			if claim, _ := s.Reservation(types.UID(strconv.Itoa(i))); claim == "" {
				b.Fatal(i)
			}
		}
		if len(s.Open()) != 200 {
			b.Fatal("not open")
		}
	}
}

func bigGroup(claims, pods int) Group {
	g := Group{ID: "g"}
	big := instanceType("big", int64(pods)+1)
	n := 0
	for i := range claims {
		var on []Pod
		for range pods {
			on = append(on, testPod(strconv.Itoa(n)))
			n++
		}
		c := newClaim("g", "c"+strconv.Itoa(i), i, claims, on...)
		c.Options = c.Options[:0]
		for _, zone := range []string{"a", "b", "c"} {
			c.Options = append(c.Options, option(big, zone, 1))
		}
		g.Claims = append(g.Claims, c)
	}
	return g
}

// BenchmarkNodeSeen is a heartbeat of a busy node among 5,000.
func BenchmarkNodeSeen(b *testing.B) {
	s := New(Config{})
	now := time.Unix(0, 0)
	s.Apply(now, PoolSeen{Pool: testPool("1m")})
	var nodes []*v1.Node
	for i := range 5000 {
		name := "c" + strconv.Itoa(i)
		c := testClaim(name, name, 0, 1)
		c.Status.ProviderID = "aws:///a/" + name
		n := plannedNode("n" + name)
		n.Spec.ProviderID = c.Status.ProviderID
		n.Labels["karpenter.sh/registered"], n.Labels["karpenter.sh/initialized"] = "true", "true"
		n.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}
		s.Apply(now, ClaimSeen{Claim: c})
		s.Apply(now, NodeSeen{Node: n})
		s.Apply(now, PodSeen{Pod: testPod(name), Node: n.Name})
		nodes = append(nodes, n)
	}
	s.Apply(now, Synced{})
	i := 0
	for b.Loop() {
		now = now.Add(time.Millisecond)
		s.Apply(now, NodeSeen{Node: nodes[i%len(nodes)]})
		i++
	}
}
