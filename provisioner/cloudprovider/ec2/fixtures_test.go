// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func kubeletWithEverything() *awsv1.KubeletConfiguration {
	return &awsv1.KubeletConfiguration{
		ClusterDNS: []string{"10.96.0.10"}, PodsPerCore: aws.Int32(20),
		SystemReserved: map[string]string{"cpu": "100m", "memory": "200Mi"}, KubeReserved: map[string]string{"cpu": "150m", "ephemeral-storage": "2Gi"},
		EvictionHard: map[string]string{"memory.available": "5%", "nodefs.available": "3Gi"},
		EvictionSoft: map[string]string{"memory.available": "10%"}, EvictionSoftGracePeriod: map[string]metav1.Duration{"memory.available": {Duration: time.Minute}},
		ImageGCHighThresholdPercent: aws.Int32(80), CPUCFSQuota: aws.Bool(false),
	}
}

func mustQuantity(t *testing.T, text string) *resource.Quantity {
	t.Helper()
	quantity, err := resource.ParseQuantity(text)
	if err != nil {
		t.Fatalf("quantity %q: %v", text, err)
	}
	return &quantity
}
