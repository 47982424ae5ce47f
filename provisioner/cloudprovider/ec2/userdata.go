// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	v1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

const (
	// userDataLimit is EC2's, in bytes before base64.
	userDataLimit = 16384
	userDataPath  = "spec.userData"
)

// bootConfig is what the user data of an image tells the machine.
type bootConfig struct {
	cluster *clusterFacts
	name    string // of the cluster
	family  string
	image   string // name of the image, which may tell its version
	custom  string // the class's own user data
	kubelet *awsv1.KubeletConfiguration
	maxPods int64
	raid0   bool
	labels  map[string]string
	taints  []v1.Taint
}

// bootConfig is what the class says of a machine with the image, without the labels and taints of a NodePool.
func (p *Provider) bootConfig(c *class, image string, maxPods int64) *bootConfig {
	spec := &c.object.Spec
	return &bootConfig{
		cluster: c.cluster, name: p.opts.ClusterName, family: c.family, image: image, custom: aws.ToString(spec.UserData),
		kubelet: spec.Kubelet, maxPods: maxPods, raid0: c.shape.raid0,
	}
}

// checkUserData finds user data that no machine could boot with, and such that would be too long whatever the NodePool
// adds. Where the cluster is not known yet the length is that without it.
func (p *Provider) checkUserData(c *class) *fault {
	probe := *c
	if probe.cluster == nil {
		probe.cluster = &clusterFacts{}
	}
	_, err := p.bootConfig(&probe, "", 0).userData()
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*userDataSizeError](err); ok {
		return &fault{"UserDataSizeLimitExceeded", err.Error()}
	}
	return &fault{"UserDataInvalid", err.Error()}
}

// userDataSizeError says that EC2 would not take the user data.
type userDataSizeError struct{ size int }

// Error implements error.
func (e *userDataSizeError) Error() string {
	return fmt.Sprintf("user data is limited to %d bytes, with what the node needs to join it is %d", userDataLimit, e.size)
}

// userData renders the boot configuration in base64. Equal configurations give equal bytes. Errors name the field of the
// class that cannot be used; one about the size is a *userDataSizeError.
func (b *bootConfig) userData() (string, error) {
	text, err := b.render()
	if err != nil {
		return "", fmt.Errorf("%s: %w", userDataPath, err)
	}
	if len(text) > userDataLimit {
		return "", fmt.Errorf("%s: %w", userDataPath, &userDataSizeError{len(text)})
	}
	return base64.StdEncoding.EncodeToString([]byte(text)), nil
}

func (b *bootConfig) render() (string, error) {
	switch b.family {
	case awsv1.AMIFamilyAL2023:
		return b.archive()
	case awsv1.AMIFamilyBottlerocket:
		return b.bottlerocketSettings()
	}
	return b.custom, nil
}

// nodeLabels leave out what a kubelet may not set on itself; the provisioner puts those on the Node. The one that is
// added says that the machine brings its taints itself.
func (b *bootConfig) nodeLabels() map[string]string {
	labels := map[string]string{karpv1.NodeDoNotSyncTaintsLabelKey: "true"}
	for key, value := range b.labels {
		if !restrictedForKubelet(key) {
			labels[key] = value
		}
	}
	return labels
}

// nodeTaints has every key and effect once: the API server refuses a Node that repeats one.
func (b *bootConfig) nodeTaints() []v1.Taint {
	var taints []v1.Taint
	for _, taint := range b.taints {
		if !slices.ContainsFunc(taints, func(t v1.Taint) bool { return t.MatchTaint(&taint) }) {
			taints = append(taints, v1.Taint{Key: taint.Key, Value: taint.Value, Effect: taint.Effect})
		}
	}
	return taints
}

// labelsFlag is the list as a kubelet's flag takes it.
func labelsFlag(labels map[string]string) string {
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		pairs = append(pairs, key+"="+labels[key])
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
