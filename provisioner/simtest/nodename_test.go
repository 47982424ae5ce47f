// SPDX-License-Identifier: Apache-2.0

package simtest

import (
	"testing"
	"testing/synctest"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// B97: subnets may name machines by their resource (i-….ec2.internal). A Node is a NodeClaim's by its provider id, never
// by its name: neither the name that EC2 computes nor the NodeClaim's own makes another machine's Node ours.
func TestNodesAreKnownByProviderID(t *testing.T) {
	files, err := readArchive("testdata/inflate.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		// named is the Node's name, of the machine's id, its private DNS name and its NodeClaim.
		named func(id, dns, claim string) string
		other bool // the Node is of another machine
		want  string
	}{
		"resource name":                      {named: func(id, _, _ string) string { return id + ".ec2.internal" }, want: "1"},
		"anything else":                      {named: func(string, string, string) string { return "worker" }, want: "1"},
		"computed name of another machine":   {named: func(_, dns, _ string) string { return dns }, other: true, want: "0"},
		"NodeClaim's name, another machine":  {named: func(_, _, claim string) string { return claim }, other: true, want: "0"},
		"resource name, of another provider": {named: func(id, _, _ string) string { return id }, other: true, want: "0"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &scenario{w: newWorld(t, files["config"]), files: files, mark: time.Now()}
				if err := s.apply("common"); err != nil {
					t.Fatal(err)
				}
				for _, line := range []string{`settings {"joinDelay":"1000h"}`, "advance 2s", "pods a 1 cpu=1", "advance 3s", "expect claims 1", "expect instances 1"} {
					play1(t, s, line)
				}
				machine, claim := s.w.live()[0], s.w.names("nodeclaim")[0]
				node := tc.named(machine.ID, machine.PrivateDNSName, claim)
				providerID := "aws:///" + machine.Zone + "/" + machine.ID
				if tc.other {
					providerID += "0"
				}
				size := v1.ResourceList{}
				for key, amount := range machine.Allocatable {
					size[v1.ResourceName(key)] = resource.MustParse(amount)
				}
				err := s.w.createCore(&v1.Node{
					ObjectMeta: metav1.ObjectMeta{Name: node, Labels: map[string]string{v1.LabelHostname: node, v1.LabelTopologyZone: machine.Zone}},
					Spec:       v1.NodeSpec{ProviderID: providerID, Taints: []v1.Taint{karpv1.UnregisteredNoExecuteTaint}},
					Status: v1.NodeStatus{
						Capacity: size, Allocatable: size, Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}},
					},
				})
				if err != nil {
					t.Fatal(err)
				}
				play1(t, s, "advance 10s")
				play1(t, s, "expect bound a "+tc.want)
				tag := s.w.aws.Instances()[0].Tags["Name"]
				if tc.other && tag != "" || !tc.other && tag != node {
					t.Errorf("the machine is called %q, its Node %q", tag, node)
				}
			})
		})
	}
}
