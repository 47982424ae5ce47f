// SPDX-License-Identifier: Apache-2.0

package userdata

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

const nodeConfigKind = "NodeConfig"

// nodeConfig is the part of node.eks.aws/v1alpha1 NodeConfig that shows in a Node object.
type nodeConfig struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Spec       struct {
		Cluster struct {
			Name                 string `json:"name"`
			APIServerEndpoint    string `json:"apiServerEndpoint"`
			CertificateAuthority []byte `json:"certificateAuthority"` // base64 in YAML
			CIDR                 string `json:"cidr"`
		} `json:"cluster"`
		Instance struct {
			LocalStorage struct {
				Strategy string `json:"strategy"`
			} `json:"localStorage"`
		} `json:"instance"`
		Kubelet struct {
			Config kubeletConfig `json:"config"`
			Flags  []string      `json:"flags"`
		} `json:"kubelet"`
	} `json:"spec"`
}

type kubeletConfig struct {
	MaxPods            *int64            `json:"maxPods"`
	PodsPerCore        int64             `json:"podsPerCore"`
	ClusterDNS         []string          `json:"clusterDNS"`
	RegisterWithTaints []corev1.Taint    `json:"registerWithTaints"`
	KubeReserved       map[string]string `json:"kubeReserved"`
	SystemReserved     map[string]string `json:"systemReserved"`
	EvictionHard       map[string]string `json:"evictionHard"`
}

func (c *Config) mergeNodeConfig(data []byte) error {
	var node nodeConfig
	if err := yaml.Unmarshal(data, &node); err != nil {
		return fmt.Errorf("reading the NodeConfig: %w", err)
	}
	if node.Kind != nodeConfigKind || node.APIVersion != "node.eks.aws/v1alpha1" {
		return fmt.Errorf("the NodeConfig part holds %q %q, want node.eks.aws/v1alpha1 NodeConfig", node.APIVersion, node.Kind)
	}
	cluster := node.Spec.Cluster
	setString(&c.ClusterName, cluster.Name)
	setString(&c.Endpoint, cluster.APIServerEndpoint)
	setString(&c.CIDR, cluster.CIDR)
	if len(cluster.CertificateAuthority) > 0 {
		c.CA = cluster.CertificateAuthority
	}
	if node.Spec.Instance.LocalStorage.Strategy == "RAID0" {
		c.RAID0 = true
	}
	c.mergeKubelet(node.Spec.Kubelet.Config)
	for _, flag := range node.Spec.Kubelet.Flags {
		if err := c.mergeFlag(flag); err != nil {
			return err
		}
	}
	return nil
}

func (c *Config) mergeKubelet(kubelet kubeletConfig) {
	if kubelet.MaxPods != nil {
		c.MaxPods = kubelet.MaxPods
	}
	if kubelet.PodsPerCore > 0 {
		c.PodsPerCore = kubelet.PodsPerCore
	}
	if len(kubelet.ClusterDNS) > 0 {
		c.ClusterDNS = kubelet.ClusterDNS
	}
	if kubelet.RegisterWithTaints != nil {
		c.Taints = kubelet.RegisterWithTaints
	}
	mergeMap(&c.KubeReserved, kubelet.KubeReserved)
	mergeMap(&c.SystemReserved, kubelet.SystemReserved)
	mergeMap(&c.EvictionHard, kubelet.EvictionHard)
}

// mergeFlag reads one kubelet command line flag. Flags win over the configuration file, as in the kubelet.
func (c *Config) mergeFlag(flag string) error {
	name, value, _ := strings.Cut(strings.TrimSpace(flag), "=")
	value = strings.Trim(value, `"'`)
	switch name {
	case "--node-labels":
		return c.mergeLabels(value)
	case "--register-with-taints":
		return c.mergeTaints(value)
	case "--max-pods":
		n, err := strconv.ParseInt(value, 10, 32)
		if err != nil {
			return fmt.Errorf("reading kubelet flag --max-pods: %w", err)
		}
		c.MaxPods = &n
	}
	return nil
}

func (c *Config) mergeLabels(list string) error {
	for pair := range strings.SplitSeq(list, ",") {
		if pair == "" {
			continue
		}
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return fmt.Errorf("reading kubelet flag --node-labels: %q is not key=value", pair)
		}
		mergeMap(&c.Labels, map[string]string{key: value})
	}
	return nil
}

func (c *Config) mergeTaints(list string) error {
	var taints []corev1.Taint
	for item := range strings.SplitSeq(list, ",") {
		if item == "" {
			continue
		}
		taint, err := parseTaint(item)
		if err != nil {
			return fmt.Errorf("reading kubelet flag --register-with-taints: %w", err)
		}
		taints = append(taints, taint)
	}
	c.Taints = taints
	return nil
}

// parseTaint reads key=value:Effect, where =value is optional.
func parseTaint(text string) (corev1.Taint, error) {
	left, effect, ok := strings.Cut(text, ":")
	key, value, _ := strings.Cut(left, "=")
	if !ok || key == "" || effect == "" {
		return corev1.Taint{}, fmt.Errorf("%q is not key=value:Effect", text)
	}
	return corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)}, nil
}

func setString(into *string, value string) {
	if value != "" {
		*into = value
	}
}
