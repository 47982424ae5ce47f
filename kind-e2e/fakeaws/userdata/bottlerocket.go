// SPDX-License-Identifier: Apache-2.0

package userdata

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"

	"github.com/pelletier/go-toml"
	corev1 "k8s.io/api/core/v1"
)

// bottlerocket is the part of Bottlerocket's settings that shows in a Node object.
type bottlerocket struct {
	Settings struct {
		Kubernetes struct {
			APIServer          string              `toml:"api-server"`
			ClusterCertificate string              `toml:"cluster-certificate"`
			ClusterName        string              `toml:"cluster-name"`
			MaxPods            *int64              `toml:"max-pods"`
			NodeLabels         map[string]string   `toml:"node-labels"`
			NodeTaints         map[string][]string `toml:"node-taints"`
			KubeReserved       map[string]string   `toml:"kube-reserved"`
			SystemReserved     map[string]string   `toml:"system-reserved"`
			EvictionHard       map[string]string   `toml:"eviction-hard"`
		} `toml:"kubernetes"`
	} `toml:"settings"`
}

func (c *Config) mergeBottlerocket(data []byte) (err error) {
	defer func() {
		if r := recover(); r != nil { // the TOML library panics on some malformed keys
			err = fmt.Errorf("reading Bottlerocket settings: %v", r)
		}
	}()
	var file bottlerocket
	if err := toml.Unmarshal(data, &file); err != nil {
		return fmt.Errorf("reading Bottlerocket settings: %w", err)
	}
	kubernetes := file.Settings.Kubernetes
	c.ClusterName, c.Endpoint = kubernetes.ClusterName, kubernetes.APIServer
	if c.CA, err = base64.StdEncoding.DecodeString(kubernetes.ClusterCertificate); err != nil {
		return fmt.Errorf("reading settings.kubernetes.cluster-certificate: %w", err)
	}
	c.MaxPods = kubernetes.MaxPods
	mergeMap(&c.Labels, kubernetes.NodeLabels)
	mergeMap(&c.KubeReserved, kubernetes.KubeReserved)
	mergeMap(&c.SystemReserved, kubernetes.SystemReserved)
	mergeMap(&c.EvictionHard, kubernetes.EvictionHard)
	for _, key := range slices.Sorted(maps.Keys(kubernetes.NodeTaints)) {
		for _, value := range kubernetes.NodeTaints[key] {
			taint, err := parseTaint(key + "=" + value)
			if err != nil {
				return fmt.Errorf("reading settings.kubernetes.node-taints: %w", err)
			}
			c.Taints = append(c.Taints, corev1.Taint{Key: taint.Key, Value: taint.Value, Effect: taint.Effect})
		}
	}
	return nil
}
