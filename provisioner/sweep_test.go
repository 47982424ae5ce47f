// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
)

func machine(id, state string, age time.Duration, tags ...string) cloudprovider.Instance {
	of := map[string]string{
		"kubernetes.io/cluster/demo": "owned", "eks:eks-cluster-name": "demo", "karpenter.sh/nodepool": "default", "karpenter.k8s.aws/ec2nodeclass": "default",
	}
	for i := 0; i+1 < len(tags); i += 2 {
		of[tags[i]] = tags[i+1]
	}
	return cloudprovider.Instance{ID: "i-" + id, ProviderID: "aws:///a/i-" + id, State: state, LaunchTime: time.Now().Add(-age), Tags: of}
}

// storedClaim is a NodeClaim in the API server of which no informer has told.
func storedClaim(name, providerID, group string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "status": map[string]any{}}}
	u.SetName(name)
	if providerID != "" {
		u.Object["status"] = map[string]any{"providerID": providerID}
	}
	if group != "" {
		u.SetAnnotations(map[string]string{"jit-scheduler.io/launch-group": group})
	}
	return u
}

// storing gives the Provisioner an API server with the NodeClaims.
func storing(p *Provisioner, claims ...runtime.Object) {
	p.Dynamic = dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		nodeClaims: "NodeClaimList", nodePools: "NodePoolList", nodeClasses: "EC2NodeClassList",
	}, claims...)
}

// B64, B71, aws#3951: what nobody has is ended; what belongs to another cluster, or to a claim that is not known here
// yet, is not.
func TestSweepEndsWhatNobodyHas(t *testing.T) {
	t.Parallel()
	const group = "jit-scheduler.io/launch-group"
	cloud := &machines{listed: []cloudprovider.Instance{
		machine("c", "running", time.Hour), machine("static", "running", time.Hour),
		machine("d", "pending", time.Hour, group, "group-d"), // its launch has not been answered
		machine("young", "running", time.Minute), machine("going", "shutting-down", time.Hour),
		machine("gone", "running", time.Hour), machine("lost", "running", time.Hour), machine("stopped", "stopped", time.Hour),

		machine("other-cluster", "running", time.Hour, "eks:eks-cluster-name", "demo-2", "kubernetes.io/cluster/demo", "", "kubernetes.io/cluster/demo-2", "owned"),
		machine("half-ours", "running", time.Hour, "kubernetes.io/cluster/demo", "shared"),
		machine("no-pool", "running", time.Hour, "karpenter.sh/nodepool", ""),

		machine("karpenters", "running", time.Hour),                               // adopted: launched by Karpenter, and not told of yet
		machine("other-zone", "running", time.Hour),                               // the claim spells its provider id another way
		machine("unseen", "running", time.Hour, group, "unseen"),                  // of a group that a former leader has launched
		machine("by-name", "running", time.Hour, "karpenter.sh/nodeclaim", "new"), // of a claim that has not been patched
	}}
	p, _ := newShell(t, cloud)
	testClaim(p, "c", testPod("a"))
	handOver(p, "c")
	testClaim(p, "d", testPod("b"))
	p.foreign["aws:///a/i-static"] = "static"
	storing(p, storedClaim("karpenters", "aws:///a/i-karpenters", ""), storedClaim("other-zone", "aws:///us-east-1b/i-other-zone", ""),
		storedClaim("unseen", "", "unseen"), storedClaim("new", "", ""))
	cloud.vanish = "aws:///a/i-gone" // since it was listed
	if err := p.sweepOnce(t.Context()); err != nil {
		t.Errorf("sweepOnce: %v", err)
	}
	slices.Sort(cloud.terminated)
	if want := []string{"aws:///a/i-lost", "aws:///a/i-stopped"}; !slices.Equal(cloud.terminated, want) || !cloud.swept {
		t.Errorf("terminated %v, templates swept: %t; want %v, true", cloud.terminated, cloud.swept, want)
	}
}

// Nothing is ended on half of the truth: NodeClaims that cannot be listed, a lease that is not ours, a Karpenter that
// leads, an AWS that does not answer, a ledger that is not rebuilt.
func TestSweepEndsNothingInDoubt(t *testing.T) {
	t.Parallel()
	no := errors.New("no")
	for name, doubt := range map[string]func(*Provisioner, *machines){
		"claims unknown": func(p *Provisioner, _ *machines) {
			p.Dynamic.(*dynamicfake.FakeDynamicClient).PrependReactor("list", "nodeclaims", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, no })
		},
		"not leading": func(p *Provisioner, _ *machines) { p.leads = func() error { return no } },
		"karpenter leads": func(p *Provisioner, _ *machines) {
			p.karpenter.leases["karpenter"] = &karpenterLease{holder: "karpenter-x", alive: true}
		},
		"not known whether karpenter leads": func(p *Provisioner, _ *machines) { p.karpenter.listed = false },
		"no answer":                         func(_ *Provisioner, m *machines) { m.err = no },
		"not synced":                        func(p *Provisioner, _ *machines) { p.synced = false },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cloud := &machines{listed: []cloudprovider.Instance{machine("lost", "running", time.Hour)}}
			p, _ := newShell(t, cloud)
			storing(p)
			doubt(p, cloud)
			_ = p.sweepOnce(t.Context()) // some doubts are errors
			if len(cloud.terminated) > 0 {
				t.Errorf("terminated %v", cloud.terminated)
			}
		})
	}
}

// A list that lacks a machine is no proof: believed, it would take the node from under running pods.
func TestAMachineIsGoneWhenTheCloudSaysSoByItsID(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		age    time.Duration
		hidden bool
		want   bool
	}{
		"gone":                        {age: time.Hour, want: true},
		"not listed, but there":       {age: time.Hour, hidden: true},
		"too young to be listed":      {age: time.Second},
		"too young, and there anyway": {age: time.Second, hidden: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				cloud := &machines{}
				p, _ := newShell(t, cloud)
				testClaim(p, "c", testPod("a"))
				handOver(p, "c")
				time.Sleep(tc.age)
				if tc.hidden {
					cloud.hidden = append(cloud.hidden, machine("c", "running", tc.age))
				}
				if err := p.sweepOnce(t.Context()); err != nil {
					t.Errorf("sweepOnce: %v", err)
				}
				if c, _ := p.state.Claim("c"); c.Ending != tc.want {
					t.Errorf("ending: %t, want %t", c.Ending, tc.want)
				}
			})
		})
	}
}
