// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	genericapiserver "k8s.io/apiserver/pkg/server"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/cli/globalflag"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/term"
	"k8s.io/component-base/version/verflag"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"

	"github.com/jit-scheduler/jit-scheduler/plugins/kubescheduler"
	"github.com/jit-scheduler/jit-scheduler/plugins/nodeprovisioning"
)

// errNoCluster is what a user sees who gave no cluster name anywhere.
var errNoCluster = errors.New("profiles[0].pluginConfig[NodeProvisioning].args.clusterName: Required value: or give --cluster-name or $CLUSTER_NAME")

func newCommand() *cobra.Command {
	opts := options.NewOptions()
	opts.SecureServing.ServerCert.PairName = name
	clusterName := os.Getenv("CLUSTER_NAME")
	cmd := &cobra.Command{
		Use:   name,
		Short: "A kube-scheduler that launches the machines its pods need",
		Long: `jit-scheduler schedules pods that carry its schedulerName and, when no node can take
them, launches EC2 instances for them by Karpenter's NodePools and EC2NodeClasses.
It takes kube-scheduler's flags and KubeSchedulerConfiguration; without --config a
built-in configuration is used, and only the cluster name must be given.`,
		SilenceUsage: true,
		Args:         cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if printVersion(cmd.Flags(), func(a ...any) { _, _ = fmt.Fprintln(cmd.OutOrStdout(), a...) }) {
				return nil
			}
			// What is wrong with the configuration is said before anybody is talked to.
			cfg, err := kubescheduler.LoadConfig(opts.ConfigFile)
			if err != nil {
				return err
			}
			args, err := provisioningArgs(cfg, clusterName)
			if err != nil {
				return err
			}
			if _, err := loadPrices(args.PriceFile); err != nil { // read again when all else is right
				return err
			}
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			go func() {
				<-genericapiserver.SetupSignalHandler()
				cancel()
			}()
			kubeconfig := cfg.ClientConnection.Kubeconfig
			if opts.ConfigFile == "" {
				kubeconfig = opts.Deprecated.Kubeconfig
			}
			return runCommand(ctx, cmd, opts, kubeconfig, args)
		},
	}
	sets := opts.Flags
	sets.FlagSet("provisioning").StringVar(&clusterName, "cluster-name", clusterName, "The EKS cluster's name (default: $CLUSTER_NAME, then the plugin's args).")
	verflag.AddFlags(sets.FlagSet("global"))
	globalflag.AddGlobalFlags(sets.FlagSet("global"), cmd.Name(), logs.SkipLoggingConfigurationFlags())
	for _, f := range sets.FlagSets {
		cmd.Flags().AddFlagSet(f)
	}
	cols, _, _ := term.TerminalSize(cmd.OutOrStdout())
	cliflag.SetUsageAndHelpFunc(cmd, *sets, cols)
	cmd.AddCommand(newCRDsCommand())
	return cmd
}

// runCommand settles the version and the feature gates, then runs.
func runCommand(ctx context.Context, cmd *cobra.Command, opts *options.Options, kubeconfig string, args nodeprovisioning.NodeProvisioningArgs) error {
	own := opts.ComponentGlobalsRegistry.EffectiveVersionFor(basecompatibility.DefaultKubeComponent).BinaryVersion()
	if err := settleVersion(ctx, cmd.Flags(), int(own.Minor()), kubeconfig, opts.Master); err != nil {
		return err
	}
	if err := opts.ComponentGlobalsRegistry.Set(); err != nil {
		return fmt.Errorf("setting feature gates: %w", err)
	}
	gates, ok := opts.ComponentGlobalsRegistry.FeatureGateFor(basecompatibility.DefaultKubeComponent).(featuregate.MutableVersionedFeatureGate)
	if !ok {
		return errors.New("setting feature gates: they cannot be changed")
	}
	if err := requireGates(gates); err != nil {
		return err
	}
	if err := logsapi.ValidateAndApply(opts.Logs, gates); err != nil {
		return fmt.Errorf("setting up logs: %w", err)
	}
	cliflag.PrintFlags(cmd.Flags())
	s, err := setup(ctx, opts, args)
	if err != nil {
		return err
	}
	gates.AddMetrics()
	opts.ComponentGlobalsRegistry.AddMetrics()
	return s.run(ctx)
}
