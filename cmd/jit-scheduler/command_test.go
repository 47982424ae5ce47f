// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/version"

	"github.com/jit-scheduler/jit-scheduler/plugins/kubescheduler"
)

// configText is a configuration with these plugin arguments, and a second profile with those.
func configText(args, second string) string {
	profile := func(name, args string) string {
		return "- schedulerName: " + name + "\n  plugins:\n    multiPoint: {enabled: [{name: NodeProvisioning}], disabled: [{name: NodeUnschedulable}]}\n" +
			"    postFilter: {enabled: [{name: NodeProvisioning}]}\n  pluginConfig:\n  - name: NodeProvisioning\n    args: " + args + "\n"
	}
	out := "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n" + profile("jit-scheduler", args)
	if second != "" {
		out += profile("other", second)
	}
	return out
}

// TestCommandRefuses: what is wrong with the configuration ends the process before it talks to anybody, and the
// message names the field.
func TestCommandRefuses(t *testing.T) {
	for name, tt := range map[string]struct {
		config string
		args   []string
		want   string
	}{
		"no cluster name":      {config: configText("{}", ""), want: "profiles[0].pluginConfig[NodeProvisioning].args.clusterName: Required value"},
		"no file, no name":     {want: "args.clusterName: Required value"},
		"bad launchWait":       {config: configText("{launchWait: 20s}", ""), want: `profiles[0].pluginConfig[0].args.launchWait: Invalid value: "20s"`},
		"unknown argument":     {config: configText("{launchWayt: 2s}", ""), want: `profiles[0].pluginConfig[0].args.launchWayt: Forbidden: unknown field`},
		"unknown field":        {config: strings.Replace(configText("{}", ""), "pluginConfig", "pluginConfigs", 1), want: `unknown field "profiles[0].pluginConfigs"`},
		"profiles disagree":    {config: configText("{clusterName: a}", "{clusterName: b}"), want: `profiles[1].pluginConfig[0].args.clusterName: Invalid value: "b"`},
		"no price file":        {config: configText("{clusterName: a, priceFile: /nonexistent/prices.yaml}", ""), want: "priceFile: reading the price file: stat /nonexistent/prices.yaml"},
		"price files differ":   {config: configText("{clusterName: a, priceFile: /b}", "{clusterName: a, priceFile: /c}"), want: `profiles[1].pluginConfig[0].args.priceFile: Invalid value: "/c"`},
		"no such file":         {args: []string{"--config=/nonexistent"}, want: "reading configuration"},
		"no arguments, please": {args: []string{"start"}, want: "unknown command"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("CLUSTER_NAME", "")
			cmd := newCommand()
			args := tt.args
			if tt.config != "" {
				file := filepath.Join(t.TempDir(), "config.yaml")
				if err := os.WriteFile(file, []byte(tt.config), 0o600); err != nil {
					t.Fatal(err)
				}
				args = append(args, "--config="+file)
			}
			cmd.SetArgs(args)
			cmd.SetOut(&bytes.Buffer{})
			cmd.SetErr(&bytes.Buffer{})
			if err := cmd.Execute(); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error = %v, want %s", err, tt.want)
			}
		})
	}
}

func TestClusterName(t *testing.T) {
	for name, tt := range map[string]struct{ flag, args, want string }{
		"args":                {args: "{clusterName: a}", want: "a"},
		"flag or environment": {flag: "f", args: "{}", want: "f"},
		"flag wins":           {flag: "f", args: "{clusterName: a}", want: "f"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, err := kubescheduler.DecodeConfig([]byte(configText(tt.args, "")))
			if err != nil {
				t.Fatal(err)
			}
			got, err := provisioningArgs(cfg, tt.flag)
			if err != nil {
				t.Fatal(err)
			}
			if got.ClusterName != tt.want {
				t.Errorf("cluster name = %q, want %q", got.ClusterName, tt.want)
			}
		})
	}
}

func TestMinorOf(t *testing.T) {
	for name, tt := range map[string]struct {
		version version.Info
		want    int
		wantErr string
	}{
		"plain":     {version: version.Info{Major: "1", Minor: "36", GitVersion: "v9.9.9"}, want: 36},
		"decorated": {version: version.Info{Major: "1", Minor: "34+"}, want: 34},
		"newer":     {version: version.Info{Major: "1", Minor: "38"}, want: 38},
		"too old":   {version: version.Info{Major: "1", Minor: "33"}, wantErr: "API server 1.33 is too old: 1.34 or newer is needed"},
		"nonsense":  {version: version.Info{Major: "1", Minor: "x"}, wantErr: "API server 1.x: version is not one that we know"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := minorOf(&tt.version)
			if tt.wantErr != "" && (err == nil || err.Error() != tt.wantErr) {
				t.Errorf("error = %v, want %s", err, tt.wantErr)
			}
			if tt.wantErr == "" && (err != nil || got != tt.want) {
				t.Errorf("minor = %d, %v, want %d", got, err, tt.want)
			}
		})
	}
}

func TestCRDs(t *testing.T) {
	cmd := newCommand()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetArgs([]string{"crds"})
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"name: nodepools.karpenter.sh", "name: nodeclaims.karpenter.sh", "name: ec2nodeclasses.karpenter.k8s.aws", "karpenter.k8s.aws/instance-category"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("CRDs lack %q", want)
		}
	}
	if got := strings.Count(out.String(), "kind: CustomResourceDefinition"); got != 3 {
		t.Errorf("%d CRDs, want 3", got)
	}
}
