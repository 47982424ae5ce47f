// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
)

// settings is a digest of what decides, beside type and image, how much a machine of the class leaves to pods: what
// its kubelet is told, its disks, and user data, which may say anything.
func (c *class) settings() string {
	spec := &c.object.Spec
	text, err := json.Marshal(struct {
		Family        string
		ReservedENIs  int64
		Kubelet       *awsv1.KubeletConfiguration
		Disks         []*awsv1.BlockDeviceMapping
		InstanceStore *awsv1.InstanceStorePolicy
		UserData      *string
	}{c.family, c.shape.reservedENIs, spec.Kubelet, spec.BlockDeviceMappings, spec.InstanceStorePolicy, spec.UserData})
	if err != nil {
		return "" // plain data always encodes
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:4])
}
