// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/judge"
)

var launchWaitCase = Case{
	Name:  "launch-wait",
	About: "with launchWait the scheduler's own event has EC2's refusal of the launch; it recovers when EC2 launches",
	Rules: judge.Rules{AllowUnlaunched: true},
	Run:   runLaunchWait,
}

func runLaunchWait(ctx context.Context, t *Trial) error {
	config, err := t.shippedConfig("launch-wait", "launchWait: 0s", "launchWait: 5s")
	if err != nil {
		return err
	}
	if err := t.Start(ctx, "--config="+config); err != nil {
		return err
	}
	if err := t.Buyable(ctx); err != nil {
		return err
	}
	if err := t.waitBuyable(ctx); err != nil {
		return err
	}
	const refusal = "You are not authorized to perform this operation."
	if _, err := t.Fake.Fault(ctx, map[string]any{"action": "CreateFleet", "code": "UnauthorizedOperation", "message": refusal}); err != nil {
		return err
	}
	if err := t.Create(ctx, t.Pod("waiting", "waiting", "1")); err != nil {
		return err
	}
	err = t.Wait(ctx, settleTimeout, func(v *judge.View) string {
		if !v.HasEvent("Pod", t.Namespace, "waiting", "FailedScheduling", "not authorized") {
			return fmt.Sprintf("no event FailedScheduling with %q, only %q", refusal, v.Events("Pod", t.Namespace, "waiting"))
		}
		return ""
	})
	if err != nil {
		return err
	}
	if err := t.Fake.ClearFaults(ctx); err != nil {
		return err
	}
	return t.WaitBound(ctx, "waiting", 1, 2*time.Minute)
}

// shippedConfig writes the configuration of manifests/, changed, for the first replica of the case, and returns its
// path. With a file, the scheduler takes its kubeconfig from there.
func (t *Trial) shippedConfig(name, old, changed string) (string, error) {
	shipped, err := os.ReadFile(filepath.Join(t.Root, "manifests/base/config.yaml"))
	if err != nil {
		return "", err
	}
	text := strings.Replace(string(shipped), "clientConnection:\n", "clientConnection:\n  kubeconfig: "+t.kubeconfigPath(t.replicaName())+"\n", 1)
	path := filepath.Join(t.Cluster.Dir, name+".yaml")
	return path, os.WriteFile(path, []byte(strings.ReplaceAll(text, old, changed)), 0o600)
}
