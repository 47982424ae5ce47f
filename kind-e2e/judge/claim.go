// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Names of Karpenter's API, which are facts of the clusters that are judged.
const (
	labelNodePool  = "karpenter.sh/nodepool"
	tagNodeClaim   = "karpenter.sh/nodeclaim"
	annotationHold = "jit-scheduler.io/hold"
)

// NodeClaims is the resource of Claim.
var NodeClaims = schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodeclaims"}

// Claim is the part of a NodeClaim (karpenter.sh/v1) that is judged.
type Claim struct {
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Resources struct {
			Requests corev1.ResourceList `json:"requests"`
		} `json:"resources"`
	} `json:"spec"`
	Status struct {
		NodeName   string              `json:"nodeName"`
		ProviderID string              `json:"providerID"`
		Capacity   corev1.ResourceList `json:"capacity"`
		Conditions []metav1.Condition  `json:"conditions"`
	} `json:"status"`
}

// claimFrom reads a NodeClaim; it fails if a field has another type than v1 gives it.
func claimFrom(u *unstructured.Unstructured) (*Claim, error) {
	claim := &Claim{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, claim); err != nil {
		return nil, fmt.Errorf("reading NodeClaim %s: %w", u.GetName(), err)
	}
	claim.ManagedFields = nil
	return claim, nil
}

// Pool is the name of the NodePool, empty for a standalone claim.
func (c *Claim) Pool() string { return c.Labels[labelNodePool] }

// vcpus is what the claim counts for in its pool's limit before its instance is known.
func (c *Claim) vcpus() float64 {
	cpu, ok := c.Status.Capacity[corev1.ResourceCPU]
	if !ok {
		cpu = c.Spec.Resources.Requests[corev1.ResourceCPU]
	}
	return vcpusOf(cpu)
}

func vcpusOf(cpu resource.Quantity) float64 { return float64(cpu.MilliValue()) / 1000 }
