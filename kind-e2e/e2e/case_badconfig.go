// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

var badConfigCase = Case{
	Name:  "bad-config",
	About: "bad plugin args, unknown fields, no cluster name: exit 1, naming the field",
	Run:   runBadConfig,
}

// badConfigs are changes to the configuration that manifests/ ships, and what the error must say. The last one is right
// but for the cluster name, which it does not get.
var badConfigs = []struct{ name, old, new, says string }{
	{"launchWait too long", "launchWait: 0s", "launchWait: 11s", "profiles[0].pluginConfig[0].args.launchWait"},
	{"launchWait no duration", "launchWait: 0s", "launchWait: soon", "launchWait"},
	{"unknown argument", "launchWait: 0s", "launchWaits: 0s", "profiles[0].pluginConfig[0].args.launchWaits"},
	{"unknown field", "leaderElection:", "leaderElections:", "leaderElections"},
	{"plugin that holds would not pass", "- name: NodeUnschedulable", "- name: NodePorts", "NodeUnschedulable"},
	{"no cluster name", "", "", "clusterName"},
}

func runBadConfig(ctx context.Context, t *Trial) error {
	shipped, err := os.ReadFile(filepath.Join(t.Root, "manifests/base/config.yaml"))
	if err != nil {
		return err
	}
	program, err := t.productPath(ctx)
	if err != nil {
		return err
	}
	kubeconfig, _, err := t.replicaKubeconfig(ctx, "bad-config")
	if err != nil {
		return err
	}
	outside := strings.Replace(string(shipped), "clientConnection:\n", "clientConnection:\n  kubeconfig: "+kubeconfig+"\n", 1)
	var errs []error
	for i, c := range badConfigs {
		file := filepath.Join(t.Cluster.Dir, fmt.Sprintf("bad-config-%d.yaml", i))
		text, args := outside, []string{"--config=" + file}
		if c.old != "" {
			text, args = strings.ReplaceAll(outside, c.old, c.new), append(args, "--cluster-name=demo")
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return err
		}
		if err := exits(ctx, program, args, c.says); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", c.name, err))
		}
	}
	return errors.Join(errs...)
}

// exits wants the program to end with 1 and to say that.
func exits(ctx context.Context, program string, args []string, says string) error {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "AWS_REGION=us-east-1"} // no CLUSTER_NAME, no KUBECONFIG
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 {
		return fmt.Errorf("ended with %w, wanted exit code 1:\n%s", err, lastLines(string(out), 5))
	}
	if !strings.Contains(string(out), says) {
		return fmt.Errorf("did not say %q:\n%s", says, lastLines(string(out), 5))
	}
	return nil
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
