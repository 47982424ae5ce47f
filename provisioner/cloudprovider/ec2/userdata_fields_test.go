// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	nodeadm "github.com/awslabs/amazon-eks-ami/nodeadm/api/v1alpha1"
	"github.com/google/go-cmp/cmp"
	pelletier "github.com/pelletier/go-toml"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/fakeaws/userdata"
)

// bootedPart is a part of an archive, decoded.
type bootedPart struct{ mediaType, body string }

// readArchive reads user data with nothing but the standard library.
func readArchive(t *testing.T, data []byte) []bootedPart {
	t.Helper()
	message, err := mail.ReadMessage(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	mediaType, params, err := mime.ParseMediaType(message.Header.Get("Content-Type"))
	if err != nil || mediaType != "multipart/mixed" || message.Header.Get("MIME-Version") != "1.0" {
		t.Fatalf("type %q, version %q: %v", mediaType, message.Header.Get("MIME-Version"), err)
	}
	var parts []bootedPart
	for reader := multipart.NewReader(message.Body, params["boundary"]); ; {
		part, err := reader.NextPart()
		if errors.Is(err, io.EOF) {
			return parts
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(part)
		if err != nil {
			t.Fatal(err)
		}
		mediaType, _, err := mime.ParseMediaType(part.Header.Get("Content-Type"))
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, bootedPart{mediaType, string(body)})
	}
}

func rendered(t *testing.T, change func(*bootConfig)) []byte {
	t.Helper()
	boot := demoBoot()
	change(boot)
	encoded, err := boot.userData()
	if err != nil {
		t.Fatal(err)
	}
	data, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func fullKubelet() *awsv1.KubeletConfiguration {
	return &awsv1.KubeletConfiguration{
		ClusterDNS: []string{"10.96.0.99"}, MaxPods: aws.Int32(29),
		SystemReserved: map[string]string{"cpu": "100m", "memory": "200Mi"}, KubeReserved: map[string]string{"cpu": "150m", "pid": "1000"},
		EvictionHard: map[string]string{"memory.available": "5%", "nodefs.available": "3Gi"},
		EvictionSoft: map[string]string{"memory.available": "10%"}, EvictionSoftGracePeriod: map[string]metav1.Duration{"memory.available": {Duration: 90 * time.Second}},
		EvictionMaxPodGracePeriod: aws.Int32(60), ImageGCHighThresholdPercent: aws.Int32(85), ImageGCLowThresholdPercent: aws.Int32(80), CPUCFSQuota: aws.Bool(false),
	}
}

// What nodeadm's own types read of the last NodeConfig, for every option.
func TestNodeConfigFields(t *testing.T) {
	t.Parallel()
	const registerWithTaints = `[{"key":"dedicated","value":"a","effect":"NoSchedule"},{"key":"karpenter.sh/unregistered","effect":"NoExecute"}]`
	const nodeLabels = "--node-labels=karpenter.sh/capacity-type=spot,karpenter.sh/do-not-sync-taints=true,karpenter.sh/nodepool=default,team=a"
	type fields struct {
		Name, Endpoint, CA, CIDR string
		Config                   map[string]string // JSON by field
		Flags                    []string
		LocalStorage             string
	}
	plain := func() fields {
		return fields{
			Name: "demo", Endpoint: "https://demo.example:443", CA: "PEM", CIDR: "10.96.0.0/16",
			Config: map[string]string{"maxPods": "29", "registerWithTaints": registerWithTaints}, Flags: []string{nodeLabels},
		}
	}
	cases := map[string]struct {
		change func(*bootConfig)
		want   func(*fields)
	}{
		"plain": {func(*bootConfig) {}, func(*fields) {}},
		"raid":  {func(b *bootConfig) { b.raid0 = true }, func(f *fields) { f.LocalStorage = "RAID0" }},
		"no labels, no taints": {
			func(b *bootConfig) { b.labels, b.taints = nil, nil },
			func(f *fields) {
				f.Flags = []string{"--node-labels=karpenter.sh/do-not-sync-taints=true"}
				f.Config = map[string]string{"maxPods": "29"}
			},
		},
		"a taint in both lists": {
			func(b *bootConfig) { b.taints = append(b.taints, b.taints[0]) }, func(*fields) {},
		},
		"IPv6": {func(b *bootConfig) { b.cluster.serviceCIDR = "fd00:10:96::/108" }, func(f *fields) { f.CIDR = "fd00:10:96::/108" }},
		"kubelet": {
			func(b *bootConfig) { b.kubelet = fullKubelet() },
			func(f *fields) {
				f.Config = map[string]string{
					"maxPods": "29", "registerWithTaints": registerWithTaints, "clusterDNS": `["10.96.0.99"]`,
					"systemReserved": `{"cpu":"100m","memory":"200Mi"}`, "kubeReserved": `{"cpu":"150m","pid":"1000"}`,
					"evictionHard": `{"memory.available":"5%","nodefs.available":"3Gi"}`, "evictionSoft": `{"memory.available":"10%"}`,
					"evictionSoftGracePeriod": `{"memory.available":"1m30s"}`, "evictionMaxPodGracePeriod": "60",
					"imageGCHighThresholdPercent": "85", "imageGCLowThresholdPercent": "80", "cpuCFSQuota": "false",
				}
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			parts := readArchive(t, rendered(t, tc.change))
			if len(parts) != 1 || parts[0].mediaType != "application/node.eks.aws" {
				t.Fatalf("parts: %+v", parts)
			}
			var config nodeadm.NodeConfig
			if err := yaml.UnmarshalStrict([]byte(parts[0].body), &config); err != nil {
				t.Fatalf("nodeadm cannot read it: %v", err)
			}
			spec := &config.Spec
			got := fields{
				Name: spec.Cluster.Name, Endpoint: spec.Cluster.APIServerEndpoint, CA: string(spec.Cluster.CertificateAuthority), CIDR: spec.Cluster.CIDR,
				Config: map[string]string{}, Flags: spec.Kubelet.Flags, LocalStorage: string(spec.Instance.LocalStorage.Strategy),
			}
			for key, value := range spec.Kubelet.Config {
				compact, err := yaml.YAMLToJSON(value.Raw)
				if err != nil {
					t.Fatal(err)
				}
				got.Config[key] = string(compact)
			}
			want := plain()
			tc.want(&want)
			for key, value := range want.Config { // in the same order of keys
				compact, err := yaml.YAMLToJSON([]byte(value))
				if err != nil {
					t.Fatal(err)
				}
				want.Config[key] = string(compact)
			}
			if config.Kind != "NodeConfig" || config.APIVersion != nodeadm.GroupVersion.String() {
				t.Errorf("%s %s", config.APIVersion, config.Kind)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
		})
	}
}

// What another TOML library than the one that wrote the settings reads of them, for every option.
func TestBottlerocketFields(t *testing.T) {
	t.Parallel()
	plain := func() table {
		return table{
			"api-server": "https://demo.example:443", "cluster-certificate": base64.StdEncoding.EncodeToString([]byte("PEM")), "cluster-name": "demo",
			"cluster-dns-ip": "10.96.0.10", "max-pods": int64(29),
			"node-labels": table{
				"team": "a", "karpenter.sh/nodepool": "default", "karpenter.sh/capacity-type": "spot", "karpenter.sh/do-not-sync-taints": "true",
			},
			"node-taints": table{"dedicated": []any{"a:NoSchedule"}, "karpenter.sh/unregistered": []any{":NoExecute"}},
		}
	}
	storage := func(bind ...any) table {
		return table{"000-mount-instance-storage": table{
			"mode": "always", "essential": true, "commands": []any{[]any{"apiclient", "ephemeral-storage", "init"}, append([]any{"apiclient", "ephemeral-storage", "bind"}, bind...)},
		}}
	}
	folders := []any{"--dirs", "/var/lib/containerd", "/var/lib/kubelet", "/var/log/pods"}
	cases := map[string]struct {
		change func(*bootConfig)
		want   func(settings, kubernetes table)
	}{
		"plain": {func(*bootConfig) {}, func(table, table) {}},
		"kubelet": {
			func(b *bootConfig) { b.kubelet = fullKubelet() },
			func(_, k table) {
				k["cluster-dns-ip"] = "10.96.0.99"
				k["system-reserved"] = table{"cpu": "100m", "memory": "200Mi"}
				k["kube-reserved"] = table{"cpu": "150m", "pid": "1000"}
				k["eviction-hard"] = table{"memory.available": "5%", "nodefs.available": "3Gi"}
				k["eviction-soft"] = table{"memory.available": "10%"}
				k["eviction-soft-grace-period"] = table{"memory.available": "1m30s"}
				k["eviction-max-pod-grace-period"] = int64(60)
				k["image-gc-high-threshold-percent"], k["image-gc-low-threshold-percent"] = "85", "80"
				k["cpu-cfs-quota-enforced"] = false
			},
		},
		"no labels, no taints": {
			func(b *bootConfig) { b.labels, b.taints = nil, nil },
			func(_, k table) {
				k["node-labels"] = table{"karpenter.sh/do-not-sync-taints": "true"}
				delete(k, "node-taints")
			},
		},
		"two effects of a key": {
			func(b *bootConfig) {
				b.taints = append(b.taints, v1.Taint{Key: "dedicated", Value: "b", Effect: v1.TaintEffectNoExecute}, b.taints[0])
			},
			func(_, k table) {
				k["node-taints"] = table{"dedicated": []any{"a:NoSchedule", "b:NoExecute"}, "karpenter.sh/unregistered": []any{":NoExecute"}}
			},
		},
		"IPv6": {func(b *bootConfig) { b.cluster.serviceCIDR = "fd00:10:96::/108" }, func(_, k table) { k["cluster-dns-ip"] = "fd00:10:96::a" }},
		"raid": {
			func(b *bootConfig) { b.raid0, b.image = true, "bottlerocket-aws-k8s-1.37-x86_64-v1.50.0-360b7a38" },
			func(s, _ table) { s["bootstrap-commands"] = storage() },
		},
		"raid, the first version that binds everything": {
			func(b *bootConfig) { b.raid0, b.image = true, "bottlerocket-aws-k8s-1.37-nvidia-arm64-v1.46.0" },
			func(s, _ table) { s["bootstrap-commands"] = storage() },
		},
		"raid, an older version": {
			func(b *bootConfig) { b.raid0, b.image = true, "bottlerocket-aws-k8s-1.34-x86_64-v1.45.9" },
			func(s, _ table) { s["bootstrap-commands"] = storage(folders...) },
		},
		"raid, a copied image": {
			func(b *bootConfig) { b.raid0, b.image = true, "ours" },
			func(s, _ table) { s["bootstrap-commands"] = storage(folders...) },
		},
		"user's settings": {
			func(b *bootConfig) {
				b.raid0, b.image = true, "v1.50.0"
				b.custom = "[settings.kernel.sysctl]\n\"vm.max_map_count\" = \"262144\"\n[settings.kubernetes]\nmax-pods = 7\ncluster-dns-ip = \"10.96.0.53\"\nallowed-unsafe-sysctls = [\"net.core.somaxconn\"]\n" +
					"[settings.kubernetes.node-labels]\nteam = \"b\"\nmine = \"x\"\n[settings.kubernetes.node-taints]\nother = [\":NoSchedule\"]\n[settings.kubernetes.eviction-hard]\n\"memory.available\" = \"15%\"\n" +
					"[settings.bootstrap-commands.mine]\ncommands = [[\"apiclient\", \"get\"]]\nmode = \"once\"\n[settings.host-containers.admin]\nenabled = true\n[metadata]\nx = 1\n"
			},
			func(s, k table) {
				s["kernel"] = table{"sysctl": table{"vm.max_map_count": "262144"}}
				s["host-containers"] = table{"admin": table{"enabled": true}}
				s["bootstrap-commands"] = storage(folders...)
				s["bootstrap-commands"].(table)["mine"] = table{"commands": []any{[]any{"apiclient", "get"}}, "mode": "once"}
				k["cluster-dns-ip"] = "10.96.0.53"
				k["allowed-unsafe-sysctls"] = []any{"net.core.somaxconn"}
				k["node-labels"].(table)["mine"] = "x"
				k["eviction-hard"] = table{"memory.available": "15%"}
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := rendered(t, func(b *bootConfig) {
				b.family = awsv1.AMIFamilyBottlerocket
				tc.change(b)
			})
			tree, err := pelletier.LoadBytes(data)
			if err != nil {
				t.Fatalf("%v in\n%s", err, data)
			}
			kubernetes := plain()
			settings := table{"kubernetes": kubernetes}
			tc.want(settings, kubernetes)
			if diff := cmp.Diff(table{"settings": settings}, tree.ToMap()); diff != "" {
				t.Errorf("settings (-want +got):\n%s\n%s", diff, data)
			}
			if parsed, err := userdata.Parse(data); err != nil || parsed.ClusterName != "demo" || *parsed.MaxPods != 29 || string(parsed.CA) != "PEM" {
				t.Errorf("a machine reads %+v, %v", parsed, err)
			}
		})
	}
}

// The parts of the class come first and as they were.
func TestCustomPartsAreKept(t *testing.T) {
	t.Parallel()
	const nodeConfig = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  featureGates:\n    InstanceIdNodeName: true\n  kubelet:\n    config:\n      maxPods: 7\n    flags: [\"--v=2\"]\n"
	archive := func(end string) string {
		lines := []string{
			"MIME-Version: 1.0", "Content-Type: multipart/mixed; boundary=\"B\"", "", "--B", "Content-Type: text/x-shellscript", "", "#!/bin/sh", "echo --//", "--B",
			"Content-Type: application/node.eks.aws", "", strings.TrimSuffix(nodeConfig, "\n"), "--B", "Content-Type: text/cloud-config", "Content-Transfer-Encoding: base64", "",
			base64.StdEncoding.EncodeToString([]byte("#cloud-config")), "--B--", "",
		}
		return strings.Join(lines, end)
	}
	cases := map[string]struct {
		custom string
		want   []bootedPart
	}{
		"nothing":       {"", nil},
		"blank":         {" \n\t\n", nil},
		"script":        {"#!/bin/sh\necho hi\n", []bootedPart{{"text/x-shellscript", "#!/bin/sh\necho hi"}}},
		"bare commands": {"echo hi\n", []bootedPart{{"text/x-shellscript", "echo hi"}}},
		"script that is YAML, too": {
			"#!/bin/sh\na: b", []bootedPart{{"text/x-shellscript", "#!/bin/sh\na: b"}},
		},
		"cloud-config":   {"#cloud-config\npackages: [jq]\n", []bootedPart{{"text/cloud-config", "#cloud-config\npackages: [jq]"}}},
		"cloud-boothook": {"#cloud-boothook\n#!/bin/sh\n", []bootedPart{{"text/cloud-boothook", "#cloud-boothook\n#!/bin/sh"}}},
		"NodeConfig":     {nodeConfig, []bootedPart{{"application/node.eks.aws", strings.TrimSuffix(nodeConfig, "\n")}}},
		"archive": {archive("\n"), []bootedPart{
			{"text/x-shellscript", "#!/bin/sh\necho --//"},
			{"application/node.eks.aws", strings.TrimSuffix(nodeConfig, "\n")},
			{"text/cloud-config", base64.StdEncoding.EncodeToString([]byte("#cloud-config"))},
		}},
		"archive with CRLF": {archive("\r\n"), []bootedPart{
			{"text/x-shellscript", "#!/bin/sh\r\necho --//"},
			{"application/node.eks.aws", strings.TrimSuffix(nodeConfig, "\n")},
			{"text/cloud-config", base64.StdEncoding.EncodeToString([]byte("#cloud-config"))},
		}},
		"message of one part": {"Content-Type: text/x-shellscript\n\n#!/bin/sh\n", []bootedPart{{"text/x-shellscript", "#!/bin/sh"}}},
		"empty archive":       {"Content-Type: multipart/mixed; boundary=B\n\n--B--\n", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			parts := readArchive(t, rendered(t, func(b *bootConfig) { b.custom = tc.custom }))
			if diff := cmp.Diff(tc.want, parts[:len(parts)-1], cmp.AllowUnexported(bootedPart{})); diff != "" && len(tc.want)+len(parts) > 1 {
				t.Errorf("parts (-want +got):\n%s", diff)
			}
			if ours := parts[len(parts)-1]; ours.mediaType != "application/node.eks.aws" || !strings.Contains(ours.body, "maxPods: 29") {
				t.Errorf("the last part is %+v", ours)
			}
		})
	}
}
