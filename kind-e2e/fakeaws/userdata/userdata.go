// SPDX-License-Identifier: Apache-2.0

// Package userdata reads the user data of a launch template as the machine that boots with it
// does: what cluster to join and how its kubelet is configured. It is pure; it decides nothing
// about capacity and must not reach out to anything. The fake endpoint calls it for every instance.
package userdata

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/mail"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Limit is the largest user data EC2 takes, in decoded bytes.
const Limit = 16384

// ErrNotKubernetes means that the user data names no cluster: such a machine boots and joins nothing.
var ErrNotKubernetes = errors.New("the user data configures no Kubernetes node")

// Config is what the user data says. Nil maps, empty strings and nil pointers mean that it is
// silent and the defaults of the image apply.
type Config struct {
	ClusterName string
	Endpoint    string // URL of the API server
	CA          []byte // PEM bundle that signs the API server's certificate
	CIDR        string // the cluster's service CIDR

	Labels         map[string]string
	Taints         []corev1.Taint
	MaxPods        *int64
	PodsPerCore    int64
	ClusterDNS     []string
	KubeReserved   map[string]string // resource name to quantity
	SystemReserved map[string]string
	EvictionHard   map[string]string // signal to quantity or percentage
	RAID0          bool              // instance store disks become the node's ephemeral storage
	// ReservesByMaxPods: the image reserves memory for the pods that its kubelet is told, as Bottlerocket
	// does, not for the type's addresses.
	ReservesByMaxPods bool
}

// Parse reads decoded user data: a MIME archive with NodeConfig parts, one bare NodeConfig, or
// Bottlerocket TOML. Later NodeConfigs win over earlier ones, as in nodeadm. It fails when the text
// is malformed, and with ErrNotKubernetes when it names no cluster and endpoint.
func Parse(data []byte) (Config, error) {
	var config Config
	var err error
	switch {
	case isMIME(data):
		err = config.mergeMIME(data)
	case bytes.Contains(data, []byte("[settings")):
		err = config.mergeBottlerocket(data)
	case bytes.Contains(data, []byte(nodeConfigKind)):
		err = config.mergeNodeConfig(data)
	}
	if err != nil {
		return Config{}, err
	}
	if config.ClusterName == "" || config.Endpoint == "" {
		return Config{}, ErrNotKubernetes
	}
	return config, nil
}

func isMIME(data []byte) bool {
	trimmed := bytes.TrimSpace(data)
	return bytes.HasPrefix(trimmed, []byte("MIME-Version:")) || bytes.HasPrefix(trimmed, []byte("Content-Type:"))
}

func (c *Config) mergeMIME(data []byte) error {
	message, err := mail.ReadMessage(bytes.NewReader(bytes.TrimLeft(data, " \t\r\n")))
	if err != nil {
		return fmt.Errorf("reading the MIME headers: %w", err)
	}
	mediaType, params, err := mime.ParseMediaType(message.Header.Get("Content-Type"))
	if err != nil {
		return fmt.Errorf("reading the MIME content type: %w", err)
	}
	if !strings.HasPrefix(mediaType, "multipart/") {
		return c.mergePart(mediaType, "", message.Body)
	}
	reader := multipart.NewReader(message.Body, params["boundary"])
	for {
		part, err := reader.NextRawPart()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading a MIME part: %w", err)
		}
		partType, _, err := mime.ParseMediaType(part.Header.Get("Content-Type"))
		if err != nil {
			return fmt.Errorf("reading the content type of a MIME part: %w", err)
		}
		if err := c.mergePart(partType, part.Header.Get("Content-Transfer-Encoding"), part); err != nil {
			return err
		}
	}
}

func (c *Config) mergePart(mediaType, encoding string, body io.Reader) error {
	if mediaType != "application/node.eks.aws" {
		return nil // shell scripts and cloud-init parts do not configure the kubelet
	}
	if strings.EqualFold(encoding, "base64") {
		body = base64.NewDecoder(base64.StdEncoding, body)
	}
	content, err := io.ReadAll(io.LimitReader(body, Limit))
	if err != nil {
		return fmt.Errorf("reading the NodeConfig part: %w", err)
	}
	return c.mergeNodeConfig(content)
}

func mergeMap(into *map[string]string, from map[string]string) {
	if *into == nil && len(from) > 0 {
		*into = map[string]string{}
	}
	maps.Copy(*into, from)
}
