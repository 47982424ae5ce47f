// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"encoding/base64"
	"flag"
	"os"
	"testing"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/fakeaws/userdata"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func demoBoot() *bootConfig {
	return &bootConfig{
		cluster: &clusterFacts{endpoint: "https://demo.example:443", ca: base64.StdEncoding.EncodeToString([]byte("PEM")), serviceCIDR: "10.96.0.0/16"},
		name:    "demo", family: awsv1.AMIFamilyAL2023, maxPods: 29,
		labels: map[string]string{
			"team": "a", "karpenter.sh/nodepool": "default", "karpenter.sh/capacity-type": "spot", "topology.kubernetes.io/zone": "us-east-1a",
			"node-restriction.kubernetes.io/x": "y", "k8s.io/x": "y",
		},
		taints: []v1.Taint{{Key: "dedicated", Value: "a", Effect: v1.TaintEffectNoSchedule}, {Key: "karpenter.sh/unregistered", Effect: v1.TaintEffectNoExecute}},
	}
}

func TestUserDataGolden(t *testing.T) {
	t.Parallel()
	archive := "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"B\"\n\n--B\nContent-Type: text/x-shellscript; charset=\"us-ascii\"\n\n#!/bin/sh\necho hi\n--B--\n"
	cases := map[string]func(*bootConfig){
		"plain":   func(*bootConfig) {},
		"kubelet": func(b *bootConfig) { b.kubelet, b.raid0 = kubeletWithEverything(), true },
		"script":  func(b *bootConfig) { b.custom = "#!/bin/sh\necho hi\n" },
		"archive": func(b *bootConfig) { b.custom = archive },
		"yaml": func(b *bootConfig) {
			b.custom = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  kubelet:\n    config:\n      maxPods: 7\n"
		},
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			boot := demoBoot()
			change(boot)
			encoded, err := boot.userData()
			if err != nil {
				t.Fatal(err)
			}
			got, err := base64.StdEncoding.DecodeString(encoded)
			if err != nil {
				t.Fatal(err)
			}
			path := "testdata/userdata-" + name + ".golden"
			if *update {
				if err := os.WriteFile(path, got, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("%s (-golden +got):\n%s", path, diff)
			}
			checkParsed(t, got)
		})
	}
}

// checkParsed reads the user data as a machine does.
func checkParsed(t *testing.T, data []byte) {
	t.Helper()
	parsed, err := userdata.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	if parsed.MaxPods == nil || *parsed.MaxPods != 29 || parsed.ClusterName != "demo" || parsed.Endpoint != "https://demo.example:443" || string(parsed.CA) != "PEM" || parsed.CIDR != "10.96.0.0/16" {
		t.Errorf("parsed as %+v", parsed)
	}
	labels := map[string]string{"team": "a", "karpenter.sh/nodepool": "default", "karpenter.sh/capacity-type": "spot", "karpenter.sh/do-not-sync-taints": "true"}
	if diff := cmp.Diff(labels, parsed.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(demoBoot().taints, parsed.Taints); diff != "" {
		t.Errorf("taints (-want +got):\n%s", diff)
	}
}

func TestUserDataLimit(t *testing.T) {
	t.Parallel()
	boot := demoBoot()
	boot.custom = "#!/bin/sh\n" + string(make([]byte, userDataLimit))
	if _, err := boot.userData(); err == nil {
		t.Error("user data over the limit was accepted")
	}
}

func FuzzCustomUserData(f *testing.F) {
	f.Add("#!/bin/sh\n")
	f.Add("a: b")
	f.Add("MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"B\"\n\n--B\nContent-Type: text/plain\n\nx\n--B--\n")
	f.Fuzz(func(t *testing.T, text string) {
		boot := demoBoot()
		boot.custom = text
		first, err := boot.userData()
		if err != nil {
			return
		}
		second, err := boot.userData()
		if err != nil || first != second {
			t.Errorf("not the same twice: %v", err)
		}
	})
}
