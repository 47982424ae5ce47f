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
			ClusterDNS         any                 `toml:"cluster-dns-ip"` // one or a list
		} `toml:"kubernetes"`
		BootstrapCommands map[string]bootstrapCommand `toml:"bootstrap-commands"`
	} `toml:"settings"`
}

// bootstrapCommand runs before the kubelet, in the order of names.
type bootstrapCommand struct {
	Commands  [][]string `toml:"commands"`
	Mode      string     `toml:"mode"` // always, once or off
	Essential bool       `toml:"essential"`
}

// mergeCommands looks for the pair that makes one disk of the instance store and puts the node's folders there.
func (c *Config) mergeCommands(commands map[string]bootstrapCommand) error {
	var initialised bool
	for _, name := range slices.Sorted(maps.Keys(commands)) {
		switch commands[name].Mode {
		case "always", "once":
		case "off":
			continue
		default:
			return fmt.Errorf("reading settings.bootstrap-commands.%s: mode %q", name, commands[name].Mode)
		}
		for _, words := range commands[name].Commands {
			if len(words) == 0 || words[0] != "apiclient" {
				return fmt.Errorf("reading settings.bootstrap-commands.%s: %q is no command of apiclient", name, words)
			}
			if len(words) < 3 || words[1] != "ephemeral-storage" {
				continue
			}
			initialised = initialised || words[2] == "init"
			c.RAID0 = c.RAID0 || (words[2] == "bind" && initialised)
		}
	}
	return nil
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
	c.MaxPods, c.ReservesByMaxPods = kubernetes.MaxPods, true
	switch address := kubernetes.ClusterDNS.(type) {
	case nil:
	case string:
		c.ClusterDNS = []string{address}
	case []any:
		for _, one := range address {
			c.ClusterDNS = append(c.ClusterDNS, fmt.Sprint(one))
		}
	default:
		return fmt.Errorf("reading settings.kubernetes.cluster-dns-ip: %v is no address", address)
	}
	if err := c.mergeCommands(file.Settings.BootstrapCommands); err != nil {
		return err
	}
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
