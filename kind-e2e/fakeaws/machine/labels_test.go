// SPDX-License-Identifier: Apache-2.0

package machine

import "testing"

func TestCheckLabels(t *testing.T) {
	t.Parallel()
	cases := map[string]bool{ // label to whether a kubelet starts with it
		"karpenter.sh/nodepool":                    true,
		"karpenter.k8s.aws/instance-cpu":           true,
		"team":                                     true,
		"kubernetes.io/arch":                       true,
		"node.kubernetes.io/instance-type":         true,
		"my.kubelet.kubernetes.io/x":               true,
		"topology.kubernetes.io/zone":              true,
		"kubernetes.io/team":                       false,
		"node-restriction.kubernetes.io/team":      false,
		"node-role.kubernetes.io/worker":           false,
		"sub.k8s.io/x":                             false,
		"notkubernetes.io/x":                       true,
		"failure-domain.beta.kubernetes.io/region": true,
	}
	for label, want := range cases {
		if err := CheckLabels(map[string]string{"ok": "", label: ""}); (err == nil) != want {
			t.Errorf("%s: got %v, want it accepted: %v", label, err, want)
		}
	}
}
