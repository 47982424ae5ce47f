// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"maps"
	"slices"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	v1 "k8s.io/api/core/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
	"github.com/jit-scheduler/jit-scheduler/provisioner/scheduling"
)

// maxVariants bounds the sets of custom label values that are tried for one pool.
const maxVariants = 32

// pool is a Pool in work.
type pool struct {
	Pool
	name   string
	weight int32
	// requirements are those of the spec and of the template's labels.
	requirements scheduling.Requirements
	// labels are on every node of the pool.
	labels map[string]string
	// custom are the requirement keys that the pool itself gives a value, in order.
	custom []string
	// minValues are the keys for which options must be diverse.
	minValues map[string]int
	limits    []limit
	opened    int
}

// newPools orders pools by weight, heaviest first, then by name.
func newPools(in []Pool) []*pool {
	out := make([]*pool, 0, len(in))
	for _, q := range in {
		if q.NodePool == nil {
			continue
		}
		template := &q.NodePool.Spec.Template
		p := &pool{Pool: q, name: q.NodePool.Name, minValues: map[string]int{}, limits: limitsOf(q)}
		if q.NodePool.Spec.Weight != nil {
			p.weight = *q.NodePool.Spec.Weight
		}
		p.requirements = scheduling.FromSpecs(template.Spec.Requirements).Intersect(scheduling.FromLabels(template.Labels))
		p.labels = maps.Clone(template.Labels)
		if p.labels == nil {
			p.labels = map[string]string{}
		}
		p.labels[karpv1.NodePoolLabelKey] = p.name
		if ref := template.Spec.NodeClassRef; ref != nil {
			p.labels[karpv1.NodeClassLabelKey(ref.GroupKind())] = ref.Name
		}
		for key, r := range p.requirements {
			if r.MinValues > 0 {
				p.minValues[key] = r.MinValues
			}
		}
		p.custom = customKeys(p)
		out = append(out, p)
	}
	slices.SortStableFunc(out, func(a, b *pool) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.name, b.name))
	})
	return out
}

// launchLabels are well known but come with the launch, not with the instance type.
var launchLabels = map[string]bool{
	v1.LabelTopologyRegion:      true,
	v1.LabelOSStable:            true,
	v1.LabelWindowsBuild:        true,
	awsv1.LabelInstanceTenancy:  true,
	awsv1.LabelPlacementGroupID: true,
}

// customKeys are the keys of the requirements that no instance type speaks of.
func customKeys(p *pool) []string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(p.requirements)) {
		if _, fixed := p.labels[key]; fixed || scheduling.WellKnown(key) && !launchLabels[key] {
			continue
		}
		if !slices.ContainsFunc(p.Types, func(t *cloudprovider.InstanceType) bool { _, ok := t.Labels[key]; return ok }) {
			out = append(out, key)
		}
	}
	return out
}

// variants are the sets of values for the custom keys that are worth offering: the pool's own choice, then what
// classes ask for, then every value of a key that a class spreads over.
func (p *pool) variants(classes []*class) []map[string]string {
	if len(p.custom) == 0 {
		return []map[string]string{nil}
	}
	var out []map[string]string
	add := func(want scheduling.Requirements) {
		labels := map[string]string{}
		for _, key := range p.custom {
			r := p.requirements[key]
			if w, ok := want[key]; ok {
				r = r.Intersect(w)
			}
			if r.AllowsAbsent() {
				continue
			}
			v, ok := r.Any()
			if !ok {
				return
			}
			labels[key] = v
		}
		if len(out) < maxVariants && !slices.ContainsFunc(out, func(m map[string]string) bool { return maps.Equal(m, labels) }) {
			out = append(out, labels)
		}
	}
	add(nil)
	for _, c := range classes {
		terms := scheduling.FromPod(c.Pods[0])
		for _, t := range terms {
			add(t)
			for _, key := range c.pins {
				for _, v := range p.requirements[key].Values() {
					add(t.Intersect(scheduling.NewRequirements(scheduling.NewRequirement(key, v1.NodeSelectorOpIn, v))))
				}
			}
		}
	}
	return out
}

// tolerated says whether the pod tolerates the pool's hard taints, and whether it does so for the soft ones too.
func (p *pool) tolerated(pod *v1.Pod) (hard *v1.Taint, soft bool) {
	soft = true
	for i := range p.NodePool.Spec.Template.Spec.Taints {
		t := &p.NodePool.Spec.Template.Spec.Taints[i]
		if slices.ContainsFunc(pod.Spec.Tolerations, func(l v1.Toleration) bool { return tolerates(l, t) }) {
			continue
		}
		if t.Effect == v1.TaintEffectPreferNoSchedule {
			soft = false
		} else if hard == nil {
			hard = t
		}
	}
	return hard, soft
}

// tolerates is the toleration rule without the numeric operators; the Fitter has the last word.
func tolerates(l v1.Toleration, t *v1.Taint) bool {
	if l.Effect != "" && l.Effect != t.Effect || l.Key != "" && l.Key != t.Key {
		return false
	}
	switch l.Operator {
	case v1.TolerationOpExists:
		return true
	case "", v1.TolerationOpEqual:
		return l.Key != "" && l.Value == t.Value
	default:
		return true
	}
}
