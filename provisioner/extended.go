// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
)

const (
	// extendedAnnotation of a NodePool declares what its machines get after they have booted, from a device plugin that
	// no cloud knows of: vendor.example/fuse=1,vendor.example/lens=4 on each machine.
	extendedAnnotation = "jit-scheduler.io/extended-resources"
	// extendedPatience is how old a node may become without a resource that was declared; the state machine's
	// HoldTimeout, after which its pods wait for it no more.
	extendedPatience = 15 * time.Minute
)

// extendedTypes are a pool's types with what the pool declares, as long as neither changes.
type extendedTypes struct {
	declared string
	base     []*cloudprovider.InstanceType
	types    []*cloudprovider.InstanceType
}

// typesOf are the types as the pool's machines will be. A declared resource that a machine of the pool has waited for in
// vain is not believed in while that machine is there: absent says where. Without that, each try would buy another
// machine. mu is held.
func (p *Provisioner) typesOf(pool *karpv1.NodePool, base []*cloudprovider.InstanceType) (types []*cloudprovider.InstanceType, absent map[v1.ResourceName]string) {
	text := pool.Annotations[extendedAnnotation]
	if text == "" {
		delete(p.extended, pool.Name)
		return base, nil
	}
	absent = p.absent(pool.Name)
	key := text + " " + strings.Join(slices.Sorted(maps.Values(absent)), " ")
	if known := p.extended[pool.Name]; known != nil && known.declared == key && sameSlice(known.base, base) {
		return known.types, absent
	}
	declared, err := parseExtended(text)
	if err != nil {
		p.logger().Error(err, "The NodePool's extended resources are ignored", "nodePool", pool.Name, "annotation", extendedAnnotation)
	}
	maps.DeleteFunc(declared, func(name v1.ResourceName, _ resource.Quantity) bool { return absent[name] != "" })
	types = base
	if len(declared) > 0 {
		types = make([]*cloudprovider.InstanceType, len(base))
		for i, t := range base {
			types[i] = extend(t, declared)
		}
	}
	p.extended[pool.Name] = &extendedTypes{key, base, types}
	return types, absent
}

func extend(t *cloudprovider.InstanceType, declared v1.ResourceList) *cloudprovider.InstanceType {
	out := *t
	out.Capacity, out.Allocatable = maps.Clone(t.Capacity), maps.Clone(t.Allocatable)
	for name, quantity := range declared {
		out.Capacity[name], out.Allocatable[name] = quantity, quantity
	}
	return &out
}

// absent are the resources, with the node, that pods of the pool's claims ask for and that an old node does not have.
func (p *Provisioner) absent(pool string) map[v1.ResourceName]string {
	out := map[v1.ResourceName]string{}
	for c := range p.state.Claims() {
		if c.Pool != pool || c.Initialized || c.Ending || c.Node == "" {
			continue
		}
		node, err := p.Informers.Core().V1().Nodes().Lister().Get(c.Node)
		if err != nil || time.Since(node.CreationTimestamp.Time) < extendedPatience {
			continue
		}
		for name, wanted := range c.Object.Spec.Resources.Requests {
			if have := node.Status.Allocatable[name]; !wanted.IsZero() && have.IsZero() {
				out[name] = node.Name
			}
		}
	}
	return out
}

// parseExtended reads name=count pairs. What Kubernetes itself counts cannot be declared.
func parseExtended(text string) (v1.ResourceList, error) {
	out := v1.ResourceList{}
	for pair := range strings.SplitSeq(text, ",") {
		name, count, _ := strings.Cut(strings.TrimSpace(pair), "=")
		domain, _, qualified := strings.Cut(name, "/")
		if !qualified || len(validation.IsQualifiedName(name)) > 0 || domain == "kubernetes.io" || strings.HasSuffix(domain, ".kubernetes.io") {
			return nil, fmt.Errorf("%q is not the name of an extended resource", name)
		}
		n, err := strconv.ParseInt(count, 10, 32)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%s: %q is not a number of pieces", name, count)
		}
		out[v1.ResourceName(name)] = *resource.NewQuantity(n, resource.DecimalSI)
	}
	return out, nil
}
