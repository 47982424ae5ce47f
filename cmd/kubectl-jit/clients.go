// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"

	"github.com/aws/aws-sdk-go-v2/aws"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider/ec2"
)

func awsConfig(ctx context.Context, region string) (aws.Config, error) {
	if region != "" {
		// The SDK's loader has to know it: some credential sources are regional.
		if err := os.Setenv("AWS_REGION", region); err != nil {
			return aws.Config{}, err
		}
	}
	return ec2.LoadConfig(ctx)
}

// clusterClient finds the cluster as kubectl does.
func clusterClient(kubeconfig, context string) (dynamic.Interface, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: context}).ClientConfig()
	if err != nil {
		return nil, err
	}
	return dynamic.NewForConfig(config)
}
