// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	v1 "k8s.io/api/core/v1"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
)

var accelerators = []v1.ResourceName{
	awsv1.ResourceNVIDIAGPU, awsv1.ResourceAMDGPU, awsv1.ResourceAWSNeuron, awsv1.ResourceAWSNeuronCore, awsv1.ResourceHabanaGaudi,
}

// exotic tells how unlike an ordinary machine the type is: with accelerators, which somebody else may wait for, or bare
// metal, which boots for long.
func exotic(t *cloudprovider.InstanceType) int {
	if strings.Contains(t.Labels[awsv1.LabelInstanceSize], "metal") {
		return 2
	}
	if slices.ContainsFunc(accelerators, func(name v1.ResourceName) bool { q := t.Allocatable[name]; return !q.IsZero() }) {
		return 1
	}
	return 0
}

// plainFirst puts what is exotic behind the rest, whatever it costs: it is bought when nothing else is to be had. Where
// minValues ask for diversity the order is by price alone, as Karpenter's.
func (p *pool) plainFirst(cands []*candidate) []*candidate {
	if len(p.minValues) > 0 || !slices.ContainsFunc(cands, func(c *candidate) bool { return exotic(c.typ) > 0 }) {
		return cands
	}
	cands = slices.Clone(cands)
	slices.SortStableFunc(cands, func(a, b *candidate) int { return exotic(a.typ) - exotic(b.typ) })
	return cands
}
