// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/jit-scheduler/jit-scheduler/plugins/nodeprovisioning"
)

// provisioningArgs are the plugin's arguments, which all profiles must agree on but for launchWait; clusterName, if
// not empty, wins. Errors name the field.
func provisioningArgs(cfg *config.KubeSchedulerConfiguration, clusterName string) (nodeprovisioning.NodeProvisioningArgs, error) {
	var first *nodeprovisioning.NodeProvisioningArgs
	var errs field.ErrorList
	for i, profile := range cfg.Profiles {
		for j, pc := range profile.PluginConfig {
			if pc.Name != nodeprovisioning.Name {
				continue
			}
			path := field.NewPath("profiles").Index(i).Child("pluginConfig").Index(j).Child("args")
			args, err := nodeprovisioning.DecodeArgs(pc.Args, path)
			if err != nil {
				return args, err
			}
			if first == nil {
				first = &args
			}
			errs = append(errs, differences(path, *first, args)...)
		}
	}
	if err := errs.ToAggregate(); err != nil {
		return nodeprovisioning.NodeProvisioningArgs{}, err
	}
	args := nodeprovisioning.NodeProvisioningArgs{}
	if first != nil {
		args = *first
	}
	args.ClusterName = cmp.Or(clusterName, args.ClusterName)
	if args.ClusterName == "" {
		return args, errNoCluster
	}
	return args, nil
}

// differences lists what one profile says otherwise than the first one.
func differences(path *field.Path, first, args nodeprovisioning.NodeProvisioningArgs) field.ErrorList {
	var errs field.ErrorList
	for _, f := range []struct{ name, want, got string }{
		{"clusterName", first.ClusterName, args.ClusterName},
		{"clusterEndpoint", first.ClusterEndpoint, args.ClusterEndpoint},
		{"region", first.Region, args.Region},
		{"endpoint", first.Endpoint, args.Endpoint},
		{"priceFile", first.PriceFile, args.PriceFile},
		{"isolatedVPC", strconv.FormatBool(first.IsolatedVPC), strconv.FormatBool(args.IsolatedVPC)},
	} {
		if f.got != f.want {
			errs = append(errs, field.Invalid(path.Child(f.name), f.got, "all profiles share one provisioner, the first says "+f.want))
		}
	}
	return errs
}
