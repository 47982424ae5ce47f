// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/jit-scheduler/jit-scheduler/plugins/kubescheduler"
	"github.com/jit-scheduler/jit-scheduler/plugins/nodeprovisioning"
)

const configFile = "base/config.yaml"

// TestConfigIsTheBuiltIn: the mounted file and the configuration without a file are the same, but for the args that the
// file shows.
func TestConfigIsTheBuiltIn(t *testing.T) {
	t.Parallel()
	shipped, builtIn := load(t, configFile), load(t, "")
	for _, c := range []*config.KubeSchedulerConfiguration{shipped, builtIn} {
		for i := range c.Profiles {
			c.Profiles[i].PluginConfig = slices.DeleteFunc(c.Profiles[i].PluginConfig, ours)
		}
	}
	if diff := cmp.Diff(builtIn, shipped); diff != "" {
		t.Errorf("%s (-built-in +shipped):\n%s", configFile, diff)
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	c := load(t, configFile)
	election := c.LeaderElection
	if !election.LeaderElect || election.ResourceName != "jit-scheduler" || election.ResourceNamespace != metav1.NamespaceSystem {
		t.Errorf("leader election = %+v, want lease kube-system/jit-scheduler", election)
	}
	if c.ClientConnection.QPS < 1000 || c.ClientConnection.Burst < 2000 {
		t.Errorf("client = %+v, which throttles 1,000 bindings", c.ClientConnection)
	}
	profile := c.Profiles[0]
	i := slices.IndexFunc(profile.PluginConfig, ours)
	if i < 0 {
		t.Fatalf("%s shows no args", configFile)
	}
	args, err := nodeprovisioning.DecodeArgs(profile.PluginConfig[i].Args, field.NewPath("args"))
	if err != nil {
		t.Error(err)
	}
	// What the file shows is the default, so that deleting it changes nothing.
	defaults, err := nodeprovisioning.DecodeArgs(nil, field.NewPath("args"))
	if err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(defaults, args); diff != "" {
		t.Errorf("args (-default +shipped):\n%s", diff)
	}
}

func ours(c config.PluginConfig) bool { return c.Name == nodeprovisioning.Name }

func load(t *testing.T, file string) *config.KubeSchedulerConfiguration {
	t.Helper()
	c, err := kubescheduler.LoadConfig(file)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
