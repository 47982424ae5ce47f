// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
)

// TestMessages holds the sentence for each kind of refusal.
func TestMessages(t *testing.T) {
	t.Parallel()
	real := realTypes(t)
	out := func(types []*cloudprovider.InstanceType) []*cloudprovider.InstanceType {
		for _, it := range types {
			for i := range it.Offerings {
				it.Offerings[i].Available = false
			}
		}
		return types
	}
	pinned := func(p *v1.Pod) {
		nodeAffinity(p).RequiredDuringSchedulingIgnoredDuringExecution = &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
			MatchFields: []v1.NodeSelectorRequirement{{Key: "metadata.name", Operator: v1.NodeSelectorOpIn, Values: []string{"n"}}},
		}}}
	}
	yes := true
	p := func(types []*cloudprovider.InstanceType, change ...func(*Pool)) []Pool {
		pl := defaultPool(types, nil)
		for _, c := range change {
			c(&pl)
		}
		return []Pool{pl}
	}
	tests := map[string]struct {
		pools       []Pool
		pod         *v1.Pod
		wantReason  string
		wantMessage string
	}{
		"no pool": {nil, pod("a"), "NoNodePool", "no NodePool can open NodeClaims now; create one, or see the Ready condition of those that exist"},
		"limit": {
			p(real, limited(v1.ResourceList{"cpu": quantity("1000")}, v1.ResourceList{"cpu": quantity("996")})), pod("a", asks("cpu=4")), "NodePoolLimitReached",
			`NodePool "default" is at its limit of 1000 cpu: 996 in use, the smallest type that fits takes 8; raise spec.limits.cpu, or remove pods`,
		},
		"node limit": {
			p(real, limited(v1.ResourceList{"nodes": quantity("3")}, v1.ResourceList{"nodes": quantity("3")})), pod("a"), "NodePoolLimitReached",
			`NodePool "default" is at its limit of 3 nodes (3 in use); raise spec.limits.nodes, or remove pods`,
		},
		"no price": {
			p(withoutPrice(realTypes(t))), pod("a", asks("cpu=300")), "NoPrice",
			`no price is known of the 96 offerings of NodePool "default" that fit the pod, such as c8i.96xlarge on-demand in us-east-1a; wait until AWS tells, allow others, or name it in the price file`,
		},
		"no type big enough, priced or not": {
			p(withoutPrice(realTypes(t))), pod("a", asks("cpu=400")), "NoInstanceTypeFits",
			`no instance type of NodePool "default" fits the pod: it needs 400 cpu, the largest (c6a.48xlarge) has 191.45; lower its requests, or allow larger types`,
		},
		"no type big enough": {
			p(real), pod("a", asks("cpu=400")), "NoInstanceTypeFits",
			`no instance type of NodePool "default" fits the pod: it needs 400 cpu, the largest (c8i.96xlarge) has 382.97; lower its requests, or allow larger types`,
		},
		"no type has the resource": {
			p(real), pod("a", asks("nvidia.com/gpu=1")), "NoInstanceTypeFits",
			`no instance type of NodePool "default" fits the pod: it needs 1 nvidia.com/gpu, which no type has; lower its requests, or allow larger types`,
		},
		"no type has both": {
			[]Pool{poolP([]*cloudprovider.InstanceType{typ("c", "amd64", 8, 8, 10), typ("m", "amd64", 2, 32, 10)})},
			pod("a", asks("cpu=4", "memory=16Gi")), "NoInstanceTypeFits",
			`no instance type of NodePool "p" fits the pod: it needs 4 cpu and 16Gi memory, which no type has together; lower its requests, or allow larger types`,
		},
		"selector that no pool has": {
			p(real), pod("a", selects("team", "blue")), "NodePoolIncompatible",
			`the pod asks for team In [blue]; NodePool "default" has no such label; change one of them, or add a NodePool`,
		},
		"selector against the pool": {
			p(real), pod("a", selects(v1.LabelArchStable, "arm64")), "NodePoolIncompatible",
			`the pod asks for kubernetes.io/arch In [arm64]; NodePool "default" has kubernetes.io/arch In [amd64]; change one of them, or add a NodePool`,
		},
		"arch of no type": {
			[]Pool{poolP(ladder(3))},
			pod("a", selects(v1.LabelArchStable, "arm64")), "NodePoolIncompatible",
			`none of the 3 instance types of NodePool "p" has kubernetes.io/arch In [arm64], as the pod asks; widen the NodePool, or add one`,
		},
		"zone without offering": {
			p(real), pod("a", selects(zone, "us-east-1f")), "NodePoolIncompatible",
			`no fitting instance type of NodePool "default" is offered with topology.kubernetes.io/zone In [us-east-1f] (zones: us-east-1a us-east-1b us-east-1c; capacity types: on-demand); change the pod, or add subnets or capacity types`,
		},
		"restricted label": {
			p(real), pod("a", selects(v1.LabelHostname, "x")), "NodePoolIncompatible",
			`the pod asks for kubernetes.io/hostname In [x], a label that no NodePool may set; remove it from the pod`,
		},
		"taint": {
			p(real, tainted(v1.TaintEffectNoSchedule)), pod("a"), "NodePoolIncompatible",
			`NodePool "default" has taint team=a:NoSchedule that the pod does not tolerate; add the toleration, or a NodePool without the taint`,
		},
		"out of capacity": {
			p(out(realTypes(t))), pod("a", asks("cpu=180")), "InsufficientCapacity",
			`all 264 offerings of NodePool "default" that fit the pod are out of capacity now (on-demand in us-east-1a, on-demand in us-east-1b, on-demand in us-east-1c); allow more types, zones or capacity types`,
		},
		"missing claim": {p(real), pod("a", func(p *v1.Pod) {
			p.Spec.Volumes = []v1.Volume{{Name: "d", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "missing"}}}}
		}), "NotNodeRelated", `no new node can help: persistentvolumeclaim "missing" not found`},
		"daemon set": {p(real), pod("a", func(p *v1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Name: "d", Controller: &yes}}
		}), "NotNodeRelated", "no new node can help: the pod belongs to a DaemonSet and runs only on the node it was made for"},
		"pinned by name": {p(real), pod("a", pinned), "NotNodeRelated", "no new node can help: its node affinity names an existing node (metadata.name)"},
		"port of a daemon": {
			p(real, daemons(pod("d", port(80)))), pod("a", port(80)), "NodePoolIncompatible",
			`a new node of NodePool "default" would not take the pod: NodePorts: node(s) didn't have free ports for the requested pod ports`,
		},
		"daemons leave no room": {
			p(real, daemons(pod("d", asks("cpu=10")))), pod("a", asks("cpu=380")), "NoInstanceTypeFits",
			`no instance type of NodePool "default" fits the pod together with the DaemonSet pods that run there (1); lower its requests, or allow larger types`,
		},
		"minValues": {
			[]Pool{poolP(ladder(3), atLeast(5, v1.LabelInstanceTypeStable, v1.NodeSelectorOpExists))},
			pod("a"), "NoInstanceTypeFits",
			`NodePool "p": too few of its 15 offerings that fit the pod to meet its minValues (node.kubernetes.io/instance-type 5); lower minValues, or allow more types`,
		},
		"several pools": {
			[]Pool{poolP(ladder(3), named("a", 0), tainted(v1.TaintEffectNoSchedule)), poolP(ladder(3), named("b", 0))},
			pod("a", asks("cpu=10")), "NoInstanceTypeFits",
			`no instance type of NodePool "b" fits the pod: it needs 10 cpu, the largest (L3) has 2.9; lower its requests, or allow larger types (nor does any other NodePool: 1)`,
		},
		"target of affinity absent": {
			p(real), pod("a", near(zone, "nobody")), "NodePoolIncompatible",
			`a new node of NodePool "default" would not take the pod: InterPodAffinity: node(s) didn't match pod affinity rules`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := Snapshot{Pools: tc.pools, Classes: Classes([]*v1.Pod{tc.pod})}
			r := Plan(s, newSimple())
			check(t, s, r)
			if len(r.Unplaced) != 1 {
				t.Fatalf("%d unplaced, want 1", len(r.Unplaced))
			}
			u := r.Unplaced[0]
			if u.Reason != tc.wantReason {
				t.Errorf("reason %s, want %s", u.Reason, tc.wantReason)
			}
			if diff := cmp.Diff(tc.wantMessage, u.Message); diff != "" {
				t.Errorf("message (-want +got):\n%s", diff)
			}
		})
	}
}

// withoutPrice is what the planner is given when nobody knows what the largest types cost.
func withoutPrice(types []*cloudprovider.InstanceType) []*cloudprovider.InstanceType {
	for _, t := range types {
		if t.Allocatable.Cpu().Value() > 200 {
			t.Offerings, t.Unpriced = nil, t.Offerings
		}
	}
	return types
}
