// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"testing"
	"time"
)

func TestOneInstancePerClaim(t *testing.T) {
	t.Parallel()
	untagged := func(nodeName string) Instance {
		i := instanceOf("", nodeName)
		delete(i.Tags, "karpenter.sh/nodeclaim")
		return i
	}
	testInvariant(t, "one-instance-per-claim", map[string]invariantCase{
		"one each": {run: func(s *scenario) {
			s.claim(claimOn("a", "")).claim(claimOn("b", "")).instance(instanceOf("a", "n1")).instance(instanceOf("b", "n2"))
		}},
		"told by provider id": {run: func(s *scenario) {
			s.claim(claimOn("a", "")).instance(untagged("n1")).claim(claimOn("a", "n1"))
		}},
		"tagged later": {run: func(s *scenario) {
			s.claim(claimOn("a", "")).instance(untagged("n1"))
			s.ObserveInstances([]Instance{{ID: "i-n1", State: "running", Tags: map[string]string{"karpenter.sh/nodeclaim": "a"}}})
		}},
		"two at once": {
			run: func(s *scenario) {
				s.claim(claimOn("a", "")).instance(instanceOf("a", "n1")).instance(instanceOf("a", "n2"))
			},
			want: []string{"i-n2: second instance of NodeClaim a (m5.xlarge) after i-n1"},
		},
		"two across time, and the claim is gone": {
			run: func(s *scenario) {
				s.claim(claimOn("a", "")).instance(instanceOf("a", "n1")).terminate("i-n1")
				s.instance(instanceOf("a", "n2")).claimGone(claimOn("a", "n2")).terminate("i-n2")
			},
			want: []string{"i-n2: second instance of NodeClaim a (m5.xlarge) after i-n1"},
		},
		"two provider ids across time": {
			run: func(s *scenario) {
				s.instance(untagged("n1")).claim(claimOn("a", "n1")).instance(untagged("n2")).claim(claimOn("a", "n2"))
			},
			want: []string{"i-n2: second instance of NodeClaim a (m5.xlarge) after i-n1"},
		},
		"without a claim": {
			run:  func(s *scenario) { s.instance(untagged("n1")).terminate("i-n1") },
			want: []string{"i-n1: belongs to no NodeClaim (m5.xlarge)"},
		},
		"of a claim that never was": {
			run:  func(s *scenario) { s.instance(instanceOf("ghost", "n1")) },
			want: []string{"i-n1: is tagged for NodeClaim ghost, which never existed"},
		},
		"swept, as the case allows": {
			run:   func(s *scenario) { s.instance(untagged("n1")).terminate("i-n1").instance(untagged("n2")) },
			rules: Rules{AllowSwept: true},
			want:  []string{"i-n2: belongs to no NodeClaim (m5.xlarge)"},
		},
	})
}

func TestClaimNeverUsed(t *testing.T) {
	t.Parallel()
	testInvariant(t, "claim-never-used", map[string]invariantCase{
		"held a pod": {run: func(s *scenario) {
			s.claim(claimOn("a", "n1")).node(node("n1")).pod(pod("p")).pod(pod("p", on("n1"))).podGone(pod("p", on("n1"))).claimGone(claimOn("a", "n1"))
		}},
		"known as the pod's only afterwards": {run: func(s *scenario) {
			n := node("n1")
			n.Spec.ProviderID = ""
			s.claim(claimOn("a", "")).node(n).pod(pod("p")).pod(pod("p", on("n1"))).claim(claimOn("a", "n1"))
		}},
		"known by provider id": {run: func(s *scenario) {
			c := claimOn("a", "n1")
			c.Status.NodeName = ""
			s.claim(c).node(node("n1")).pod(pod("p")).pod(pod("p", on("n1")))
		}},
		"awaited at the end": {run: func(s *scenario) { s.claim(claimOn("a", "")).pod(pod("p", nominated("a"))) }},
		"empty": {
			run:  func(s *scenario) { s.claim(claimOn("a", "n1")).instance(instanceOf("a", "n1")) },
			want: []string{"a: never held a pod (instance launched: true, still there: true)"},
		},
		"two machines of one name, one after the other": {
			run: func(s *scenario) {
				first, second := node("n1"), node("n1")
				second.UID, second.Spec.ProviderID = "second", "aws:///us-east-1a/i-second"
				reused := claimOn("b", "n1")
				reused.Status.ProviderID = second.Spec.ProviderID
				s.claim(claimOn("a", "n1")).node(first).pod(pod("p")).pod(pod("p", on("n1"))).podGone(pod("p", on("n1"))).nodeGone(first)
				s.claim(reused).node(second)
			},
			want: []string{"b: never held a pod (instance launched: true, still there: true)"},
		},
		"only a DaemonSet's": {
			run: func(s *scenario) {
				s.claim(claimOn("a", "n1")).node(node("n1")).pod(pod("ds", daemon, on("n1"))).claimGone(claimOn("a", "n1"))
			},
			want: []string{"a: never held a pod (instance launched: true, still there: false)"},
		},
		"never launched, as the case allows": {
			run: func(s *scenario) {
				s.claim(claimOn("a", "")).claimGone(claimOn("a", ""))
				s.claim(claimOn("b", "")).instance(instanceOf("b", "n2")).claimGone(claimOn("b", ""))
			},
			rules: Rules{AllowUnlaunched: true},
			want:  []string{"b: never held a pod (instance launched: true, still there: false)"},
		},
	})
}

func TestLeftovers(t *testing.T) {
	t.Parallel()
	everything := func(s *scenario) {
		s.claim(claimOn("a", "n1")).node(node("n1")).instance(instanceOf("a", "n1"))
		s.ObserveLaunchTemplates([]LaunchTemplate{{ID: "lt-1", Name: "demo-1"}})
	}
	testInvariant(t, "leftovers", map[string]invariantCase{
		"nothing": {
			run: func(s *scenario) {
				everything(s)
				s.nodeGone(node("n1")).terminate("i-n1").claimGone(claimOn("a", "n1")).ObserveLaunchTemplates(nil)
				own := node("control-plane")
				own.Labels = nil
				s.node(own)
			},
			rules: Rules{WantNothingLeft: true},
		},
		"everything": {
			run:   everything,
			rules: Rules{WantNothingLeft: true},
			want: []string{
				"a: NodeClaim is left", "demo-1: launch template is left",
				"i-n1: instance is left: m5.xlarge, running", "n1: Node is left",
			},
		},
		"everything, and nobody minds": {run: everything},
		"shutting down is not gone": {
			run: func(s *scenario) {
				i := instanceOf("a", "n1")
				i.State = "shutting-down"
				s.instance(i)
			},
			rules: Rules{WantNothingLeft: true},
			want:  []string{"i-n1: instance is left: m5.xlarge, shutting-down"},
		},
	})
}

func TestLimits(t *testing.T) {
	t.Parallel()
	eight := Rules{Limits: map[string]float64{"default": 8}}
	testInvariant(t, "limits", map[string]invariantCase{
		"at the limit": {rules: eight, run: func(s *scenario) {
			s.claim(claimOn("a", "")).claim(claimOn("b", "")).instance(instanceOf("a", "n1")).instance(instanceOf("b", "n2"))
		}},
		"one goes, one comes": {rules: eight, run: func(s *scenario) {
			s.claim(claimOn("a", "")).claim(claimOn("b", "")).instance(instanceOf("a", "n1")).instance(instanceOf("b", "n2"))
			s.terminate("i-n1").claimGone(claimOn("a", "n1")).claim(claimOn("c", "")).instance(instanceOf("c", "n3"))
		}},
		"never launched, gone": {rules: eight, run: func(s *scenario) {
			for _, name := range []string{"a", "b", "c", "d"} {
				s.claim(claimOn(name, "")).claimGone(claimOn(name, ""))
			}
		}},
		"over it while in flight": {
			rules: eight,
			run: func(s *scenario) {
				s.claim(claimOn("a", "")).claim(claimOn("b", "")).claim(claimOn("c", "")).claimGone(claimOn("c", ""))
			},
			want: []string{"default: 12 vCPU of 8 with NodeClaim c"},
		},
		"the machine is larger than the claim asked": {
			rules: eight,
			run: func(s *scenario) {
				i := instanceOf("a", "n1")
				i.VCPUs = 16
				s.claim(claimOn("a", "")).instance(i)
			},
			want: []string{"default: 16 vCPU of 8 with instance i-n1"},
		},
		"the claim goes, the machine stays": {
			rules: eight,
			run: func(s *scenario) {
				s.claim(claimOn("a", "")).instance(instanceOf("a", "n1")).claimGone(claimOn("a", ""))
				s.claim(claimOn("b", "")).instance(instanceOf("b", "n2")).wait(time.Second).claim(claimOn("c", ""))
			},
			want: []string{"default: 12 vCPU of 8 with NodeClaim c"},
		},
		"another pool": {rules: Rules{Limits: map[string]float64{"other": 1}}, run: func(s *scenario) { s.claim(claimOn("a", "")) }},
	})
}
