// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/mail"
	"net/textproto"
	"slices"
	"strings"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

const (
	nodeConfigType   = "application/node.eks.aws"
	shellScriptType  = `text/x-shellscript; charset="us-ascii"`
	userDataBoundary = "//"
	// userDataLimit is EC2's, in bytes before base64.
	userDataLimit = 16384
)

// bootConfig is what the user data of an image tells the machine.
type bootConfig struct {
	cluster *clusterFacts
	name    string // of the cluster
	family  string
	custom  string // the class's own user data
	kubelet *awsv1.KubeletConfiguration
	maxPods int64
	raid0   bool
	labels  map[string]string
	taints  []v1.Taint
}

// userData renders the boot configuration in base64. Equal configurations give equal bytes.
func (b *bootConfig) userData() (string, error) {
	text := b.custom
	if b.family == awsv1.AMIFamilyAL2023 {
		var err error
		if text, err = b.archive(); err != nil {
			return "", err
		}
	}
	if len(text) > userDataLimit {
		return "", fmt.Errorf("user data is limited to %d bytes, this is %d", userDataLimit, len(text))
	}
	return base64.StdEncoding.EncodeToString([]byte(text)), nil
}

type mimePart struct {
	header textproto.MIMEHeader
	body   string
}

// archive is a MIME archive: the class's own parts, then our NodeConfig, since nodeadm lets the last one win.
func (b *bootConfig) archive() (string, error) {
	parts, err := customParts(b.custom)
	if err != nil {
		return "", fmt.Errorf("reading spec.userData: %w", err)
	}
	config, err := b.nodeConfig()
	if err != nil {
		return "", err
	}
	parts = append(parts, newPart(nodeConfigType, string(config)))
	var text strings.Builder
	text.WriteString("MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"" + userDataBoundary + "\"\n\n")
	for _, part := range parts {
		text.WriteString("--" + userDataBoundary + "\n")
		for _, key := range slices.Sorted(maps.Keys(part.header)) {
			text.WriteString(key + ": " + part.header.Get(key) + "\n")
		}
		text.WriteString("\n" + strings.TrimRight(part.body, "\n") + "\n")
	}
	text.WriteString("--" + userDataBoundary + "--\n")
	return text.String(), nil
}

func newPart(contentType, body string) mimePart {
	return mimePart{header: textproto.MIMEHeader{"Content-Type": {contentType}}, body: body}
}

// customParts reads a class's user data: a MIME archive, a YAML document for nodeadm, or a script.
func customParts(text string) ([]mimePart, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	if message, err := mail.ReadMessage(strings.NewReader(strings.TrimSpace(text) + "\n")); err == nil {
		if mediaType, params, err := mime.ParseMediaType(message.Header.Get("Content-Type")); err == nil && strings.HasPrefix(mediaType, "multipart/") {
			return readParts(message.Body, params["boundary"])
		}
	}
	document := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &document); err == nil && len(document) > 0 {
		return []mimePart{newPart(nodeConfigType, text)}, nil
	}
	return []mimePart{newPart(shellScriptType, text)}, nil
}

func readParts(body io.Reader, boundary string) ([]mimePart, error) {
	var parts []mimePart
	for reader := multipart.NewReader(body, boundary); ; {
		part, err := reader.NextRawPart()
		if errors.Is(err, io.EOF) {
			return parts, nil
		}
		if err != nil {
			return nil, err
		}
		var content bytes.Buffer
		if _, err := io.Copy(&content, part); err != nil {
			return nil, err
		}
		parts = append(parts, mimePart{header: part.Header, body: content.String()})
	}
}

// nodeConfig is nodeadm's configuration as YAML.
func (b *bootConfig) nodeConfig() ([]byte, error) {
	kubelet, err := b.kubeletConfig()
	if err != nil {
		return nil, err
	}
	section := map[string]any{"config": kubelet}
	if labels := b.nodeLabels(); labels != "" {
		section["flags"] = []string{"--node-labels=" + labels}
	}
	spec := map[string]any{
		"cluster": map[string]any{
			"name": b.name, "apiServerEndpoint": b.cluster.endpoint, "certificateAuthority": b.cluster.ca, "cidr": b.cluster.serviceCIDR,
		},
		"kubelet": section,
	}
	if b.raid0 {
		spec["instance"] = map[string]any{"localStorage": map[string]any{"strategy": string(awsv1.InstanceStorePolicyRAID0)}}
	}
	return yaml.Marshal(map[string]any{"apiVersion": "node.eks.aws/v1alpha1", "kind": "NodeConfig", "spec": spec})
}

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
	if len(b.taints) > 0 {
		config["registerWithTaints"] = b.taints
	}
	return config, nil
}

// nodeLabels leaves out what a kubelet may not set on itself; the provisioner puts those on the Node.
func (b *bootConfig) nodeLabels() string {
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(b.labels)) {
		if !restrictedForKubelet(key) {
			pairs = append(pairs, key+"="+b.labels[key])
		}
	}
	return strings.Join(pairs, ",")
}

func restrictedForKubelet(key string) bool {
	domain, _, hasDomain := strings.Cut(key, "/")
	if !hasDomain {
		return false
	}
	for _, restricted := range []string{"kubernetes.io", "k8s.io"} {
		if domain == restricted || strings.HasSuffix(domain, "."+restricted) {
			return true
		}
	}
	return false
}
