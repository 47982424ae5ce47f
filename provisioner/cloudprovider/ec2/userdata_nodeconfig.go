// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"encoding/json"
	"fmt"
	"strings"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"sigs.k8s.io/yaml"
)

const (
	nodeConfigGroup   = "node.eks.aws"
	nodeConfigVersion = nodeConfigGroup + "/v1alpha1"
	nodeConfigKind    = "NodeConfig"
)

// checkNodeConfig finds what nodeadm refuses at boot: another kind, or fields of another type. Fields that are not here
// are for nodeadm to judge, since it gets new ones.
func checkNodeConfig(text []byte) error {
	var config struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Spec       struct {
			Cluster      map[string]any  `json:"cluster"`
			Containerd   map[string]any  `json:"containerd"`
			FeatureGates map[string]bool `json:"featureGates"`
			Instance     struct {
				LocalStorage map[string]any `json:"localStorage"`
			} `json:"instance"`
			Kubelet struct {
				Config map[string]any `json:"config"`
				Flags  []string       `json:"flags"`
			} `json:"kubelet"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(text, &config); err != nil {
		return fmt.Errorf("NodeConfig: %w", err)
	}
	if config.Kind != nodeConfigKind || !strings.HasPrefix(config.APIVersion, nodeConfigGroup+"/") {
		return fmt.Errorf("a YAML document must be apiVersion %s, kind %s, not %q, %q", nodeConfigVersion, nodeConfigKind, config.APIVersion, config.Kind)
	}
	return nil
}

// nodeConfig is nodeadm's configuration as YAML.
func (b *bootConfig) nodeConfig() ([]byte, error) {
	kubelet, err := b.kubeletConfig()
	if err != nil {
		return nil, err
	}
	spec := map[string]any{
		"cluster": map[string]any{
			"name": b.name, "apiServerEndpoint": b.cluster.endpoint, "certificateAuthority": b.cluster.ca, "cidr": b.cluster.serviceCIDR,
		},
		"kubelet": map[string]any{"config": kubelet, "flags": []string{"--node-labels=" + labelsFlag(b.nodeLabels())}},
	}
	if b.raid0 {
		spec["instance"] = map[string]any{"localStorage": map[string]any{"strategy": string(awsv1.InstanceStorePolicyRAID0)}}
	}
	return yaml.Marshal(map[string]any{"apiVersion": nodeConfigVersion, "kind": nodeConfigKind, "spec": spec})
}

// kubeletConfig leaves cluster DNS to nodeadm, which derives it from the service CIDR, unless the class names one.
func (b *bootConfig) kubeletConfig() (map[string]any, error) {
	config := map[string]any{}
	if b.kubelet != nil {
		data, err := json.Marshal(b.kubelet)
		if err != nil {
			return nil, fmt.Errorf("writing spec.kubelet: %w", err)
		}
		if err := json.Unmarshal(data, &config); err != nil {
			return nil, fmt.Errorf("writing spec.kubelet: %w", err)
		}
	}
	config["maxPods"] = b.maxPods
	if taints := b.nodeTaints(); len(taints) > 0 {
		config["registerWithTaints"] = taints
	}
	return config, nil
}
