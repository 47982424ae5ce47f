// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/features"
)

const (
	// oldestMinor is the oldest 1.x API server that the tests run against.
	oldestMinor = 34
	// versionTimeout bounds how long a starting process waits for the API server.
	versionTimeout = time.Minute
)

// requiredGates are on whatever the emulated version's default: the design leans on them.
var requiredGates = []featuregate.Feature{
	// A nominated pod is popped, and parked, at once.
	features.SchedulerPopFromBackoffQ,
}

// settleVersion reads the API server's version and makes the scheduler emulate it if it is older than we are (1.own): a newer
// scheduler lists kinds that an older server does not have, and hangs. A version given by flag stays.
func settleVersion(ctx context.Context, flags *pflag.FlagSet, own int, kubeconfig, master string) error {
	server, err := serverVersion(ctx, kubeconfig, master)
	if err != nil {
		return fmt.Errorf("reading the API server's version: %w", err)
	}
	minor, err := minorOf(server)
	if err != nil {
		return err
	}
	emulate := min(minor, own)
	if f := flags.Lookup("emulated-version"); f == nil || f.Changed || emulate == own {
		return nil
	}
	klog.FromContext(ctx).Info("Emulating the API server's version", "emulated", fmt.Sprintf("1.%d", emulate), "binary", fmt.Sprintf("1.%d", own))
	return flags.Set("emulated-version", fmt.Sprintf("kube=1.%d", emulate))
}

// minorOf reads major and minor, never gitVersion: vendors decorate it.
func minorOf(v *version.Info) (int, error) {
	minor, err := strconv.Atoi(strings.TrimRight(v.Minor, "+"))
	if err != nil || v.Major != "1" {
		return 0, fmt.Errorf("API server %s.%s: version is not one that we know", v.Major, v.Minor)
	}
	if minor < oldestMinor {
		return 0, fmt.Errorf("API server %s.%s is too old: 1.%d or newer is needed", v.Major, v.Minor, oldestMinor)
	}
	return minor, nil
}

func serverVersion(ctx context.Context, kubeconfig, master string) (*version.Info, error) {
	cfg, err := clientcmd.BuildConfigFromFlags(master, kubeconfig)
	if err != nil {
		return nil, err
	}
	cfg.Timeout = 10 * time.Second
	client, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, err
	}
	var v *version.Info
	var last error
	err = wait.PollUntilContextTimeout(ctx, time.Second, versionTimeout, true, func(context.Context) (bool, error) {
		v, last = client.ServerVersion()
		return last == nil, nil
	})
	if err != nil {
		return nil, errors.Join(err, last)
	}
	return v, nil
}

// requireGates switches on what we need, whatever the flags say.
func requireGates(gates featuregate.MutableVersionedFeatureGate) error {
	for _, g := range requiredGates {
		if gates.Enabled(g) {
			continue
		}
		if err := gates.SetFromMap(map[string]bool{string(g): true}); err != nil {
			return fmt.Errorf("switching on feature gate %s: %w", g, err)
		}
	}
	return nil
}
