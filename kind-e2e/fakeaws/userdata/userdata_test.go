// SPDX-License-Identifier: Apache-2.0

package userdata

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

const karpenterStyle = `MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="//"

--//
Content-Type: text/x-shellscript; charset="us-ascii"

#!/bin/bash
echo hello
--//
Content-Type: application/node.eks.aws

apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster:
    name: overridden
  kubelet:
    config:
      evictionHard: {memory.available: 5%}
      maxPods: 7
--//
Content-Type: application/node.eks.aws

# a comment
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
metadata:
  creationTimestamp: null
spec:
  cluster:
    apiServerEndpoint: https://127.0.0.1:6443
    certificateAuthority: Y2EtYnVuZGxl
    cidr: 10.96.0.0/16
    name: demo
  containerd: {}
  instance:
    localStorage:
      strategy: RAID0
  kubelet:
    config:
      clusterDNS:
      - 10.96.0.10
      kubeReserved: {cpu: 80m}
      maxPods: 58
      registerWithTaints:
      - effect: NoExecute
        key: karpenter.sh/unregistered
    flags:
    - --node-labels="karpenter.sh/capacity-type=on-demand,karpenter.sh/nodepool=default"
--//--
`

const bottlerocketStyle = `[settings]
[settings.kubernetes]
api-server = 'https://127.0.0.1:6443'
cluster-certificate = 'Y2EtYnVuZGxl'
cluster-name = 'demo'
max-pods = 29
[settings.kubernetes.node-labels]
'karpenter.sh/nodepool' = 'default'
[settings.kubernetes.node-taints]
'karpenter.sh/unregistered' = [':NoExecute']
[settings.kubernetes.system-reserved]
cpu = '100m'
`

func TestParse(t *testing.T) {
	t.Parallel()
	unregistered := []corev1.Taint{{Key: "karpenter.sh/unregistered", Effect: corev1.TaintEffectNoExecute}}
	maxPods := func(n int64) *int64 { return &n }
	cases := map[string]struct {
		data    string
		want    Config
		wantErr string
	}{
		"MIME archive, the last NodeConfig wins": {
			data: karpenterStyle,
			want: Config{
				ClusterName: "demo", Endpoint: "https://127.0.0.1:6443", CA: []byte("ca-bundle"), CIDR: "10.96.0.0/16",
				Labels: map[string]string{"karpenter.sh/capacity-type": "on-demand", "karpenter.sh/nodepool": "default"},
				Taints: unregistered, MaxPods: maxPods(58), ClusterDNS: []string{"10.96.0.10"},
				KubeReserved: map[string]string{"cpu": "80m"}, EvictionHard: map[string]string{"memory.available": "5%"}, RAID0: true,
			},
		},
		"bare NodeConfig with flags": {
			data: "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  cluster: {name: demo, apiServerEndpoint: https://a}\n" +
				"  kubelet:\n    flags: ['--node-labels=a=b', '--node-labels=c=d', '--register-with-taints=k=v:NoSchedule', '--max-pods=3']\n",
			want: Config{
				ClusterName: "demo", Endpoint: "https://a", Labels: map[string]string{"a": "b", "c": "d"}, MaxPods: maxPods(3),
				Taints: []corev1.Taint{{Key: "k", Value: "v", Effect: corev1.TaintEffectNoSchedule}},
			},
		},
		"Bottlerocket settings": {
			data: bottlerocketStyle,
			want: Config{
				ClusterName: "demo", Endpoint: "https://127.0.0.1:6443", CA: []byte("ca-bundle"), MaxPods: maxPods(29),
				Labels: map[string]string{"karpenter.sh/nodepool": "default"}, Taints: unregistered,
				SystemReserved: map[string]string{"cpu": "100m"}, ReservesByMaxPods: true,
			},
		},
		"Bottlerocket with instance store disks": {
			data: strings.Replace(bottlerocketStyle, "max-pods = 29", "cluster-dns-ip = '10.96.0.10'", 1) +
				"[settings.bootstrap-commands.000-mount-instance-storage]\nmode = 'always'\nessential = true\ncommands = [['apiclient', 'ephemeral-storage', 'init'], ['apiclient', 'ephemeral-storage', 'bind']]\n",
			want: Config{
				ClusterName: "demo", Endpoint: "https://127.0.0.1:6443", CA: []byte("ca-bundle"), ClusterDNS: []string{"10.96.0.10"},
				Labels: map[string]string{"karpenter.sh/nodepool": "default"}, Taints: unregistered,
				SystemReserved: map[string]string{"cpu": "100m"}, ReservesByMaxPods: true, RAID0: true,
			},
		},
		"Bottlerocket command of another program": {
			data:    bottlerocketStyle + "[settings.bootstrap-commands.x]\nmode = 'once'\ncommands = [['sh']]\n",
			wantErr: "no command of apiclient",
		},
		"Bottlerocket mode":   {data: bottlerocketStyle + "[settings.bootstrap-commands.x]\nmode = 'never'\n", wantErr: "mode"},
		"Bottlerocket number": {data: strings.Replace(bottlerocketStyle, "29", "29\ncluster-dns-ip = 5", 1), wantErr: "cluster-dns-ip"},
		"shell script":        {data: "#!/bin/bash\n", wantErr: ErrNotKubernetes.Error()},
		"empty":               {data: "", wantErr: ErrNotKubernetes.Error()},
		"bad label":           {data: strings.Replace(karpenterStyle, "nodepool=default", "nodepool", 1), wantErr: "--node-labels"},
		"bad certificate":     {data: strings.Replace(karpenterStyle, "Y2EtYnVuZGxl", "%%", 1), wantErr: "NodeConfig"},
		"another kind":        {data: strings.Replace(karpenterStyle, "v1alpha1", "v2", 1), wantErr: "want node.eks.aws/v1alpha1"},
		"archive cut in two":  {data: karpenterStyle[:400], wantErr: ErrNotKubernetes.Error()},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Parse([]byte(tc.data))
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Fatalf("got error %v, want one with %q", err, tc.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(karpenterStyle))
	f.Add([]byte(bottlerocketStyle))
	f.Add([]byte("Content-Type: application/node.eks.aws\n\nkind: NodeConfig"))
	f.Add([]byte("[settings.kubernetes]\nnode-taints.a = [1]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		config, err := Parse(data)
		if err != nil {
			if diff := cmp.Diff(Config{}, config); diff != "" {
				t.Errorf("a failed parse must return nothing: %s", diff)
			}
			return
		}
		if config.ClusterName == "" || config.Endpoint == "" {
			t.Errorf("no cluster and no error: %+v", config)
		}
		if errors.Is(err, ErrNotKubernetes) {
			t.Errorf("unexpected %v", err)
		}
	})
}
