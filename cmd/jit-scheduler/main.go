// SPDX-License-Identifier: Apache-2.0

// Command jit-scheduler is a second kube-scheduler with an embedded EC2 provisioner: the full kube-scheduler command
// plus the plugin NodeProvisioning. It only wires: configuration, versions, clients, leader election, serving. What is
// scheduled is kube-scheduler's business, what is bought the provisioner's.
//
// One HTTPS port serves everything: health, readiness (which includes the provisioner's), metrics and profiling, with
// kube-scheduler's authentication and authorization. kube-scheduler's own server has no hook for more checks and stays
// off.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client-go metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // build metrics
)

func main() { os.Exit(cli.Run(newCommand())) }
