// SPDX-License-Identifier: Apache-2.0

package kubescheduler

import (
	_ "embed"
	"fmt"
	"os"

	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
)

//go:embed default-config.yaml
var defaultConfig []byte

// LoadConfig reads, defaults and validates a KubeSchedulerConfiguration strictly; file "" is the built-in default.
func LoadConfig(file string) (*config.KubeSchedulerConfiguration, error) {
	data, err := defaultConfig, error(nil)
	if file != "" {
		if data, err = os.ReadFile(file); err != nil {
			return nil, fmt.Errorf("reading configuration: %w", err)
		}
	}
	return DecodeConfig(data)
}

// DecodeConfig is LoadConfig for the text itself.
func DecodeConfig(data []byte) (*config.KubeSchedulerConfiguration, error) {
	obj, gvk, err := scheme.Codecs.UniversalDecoder().Decode(data, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("decoding configuration: %w", err)
	}
	cfg, ok := obj.(*config.KubeSchedulerConfiguration)
	if !ok {
		return nil, fmt.Errorf("decoding configuration: want KubeSchedulerConfiguration, got %s", gvk)
	}
	cfg.APIVersion = gvk.GroupVersion().String()
	if err := validation.ValidateKubeSchedulerConfiguration(cfg); err != nil {
		return nil, fmt.Errorf("validating configuration: %w", err)
	}
	return cfg, nil
}
