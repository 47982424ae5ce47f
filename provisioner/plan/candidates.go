// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
	"github.com/jit-scheduler/jit-scheduler/provisioner/scheduling"
)

const (
	// PlannedAnnotation marks the planned nodes in the scheduler's cache.
	PlannedAnnotation = "jit-scheduler.io/planned"
	ebsZoneLabel      = "topology.ebs.csi.aws.com/zone"
)

// candidate is a machine that could be bought: an offering of an instance type, as a node of a pool.
type candidate struct {
	index    int
	name     string
	pool     *pool
	typ      *cloudprovider.InstanceType
	offering cloudprovider.Offering
	// variant is the number of its set of custom labels within the pool.
	variant int
	// price is in billionths of a USD per hour, so that sums compare exactly.
	price   int64
	node    *v1.Node
	daemons []*v1.Pod
	// free is allocatable less daemons.
	free []int64
	// use is what it takes of the pool's limits.
	use []int64
}

func nanoUSD(price float64) int64 { return int64(math.Round(price * 1e9)) }

// offer makes the candidates, once, and shows them to the Fitter. Offerings in which no pod of the plan fits, or which
// alone are over a limit, are left out.
func (p *planner) offer() {
	if p.offered {
		return
	}
	p.offered = true
	for _, pl := range p.pools {
		variants := pl.variants(p.classes)
		for _, t := range pl.Types {
			p.candidatesOf(pl, t, variants)
		}
	}
	slices.SortStableFunc(p.cands, func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(a.price, b.price), cmp.Compare(a.name, b.name))
	})
	shown := make([]Candidate, len(p.cands))
	p.byName = make(map[string]int, len(p.cands))
	for i, c := range p.cands {
		c.index = i
		p.byName[c.name] = i
		shown[i] = Candidate{Node: c.node, Daemons: c.pool.Daemons}
	}
	if len(shown) == 0 {
		return
	}
	for i, daemons := range p.f.Candidates(shown) {
		c := p.cands[i]
		c.daemons = daemons
		for _, d := range daemons {
			subtract(c.free, p.dims.vector(scheduling.Requests(d)), 1)
		}
	}
}

func (p *planner) candidatesOf(pl *pool, t *cloudprovider.InstanceType, variants []map[string]string) {
	free := p.dims.vector(t.Allocatable)
	if !slices.ContainsFunc(p.classes, func(c *class) bool { return len(c.rest) > 0 && times(c.request, free) > 0 }) {
		return
	}
	use := pl.usage(t)
	if !pl.allows(use, 1) {
		return
	}
	for _, o := range t.Offerings {
		if !o.Available {
			continue
		}
		for v, custom := range variants {
			if !pl.requirements.MatchesFunc(func(key string) (string, bool) { return labelOf(key, pl, t, o, custom) }) {
				continue
			}
			labels := labelsOf(pl, t, o, custom)
			name := strings.Join([]string{pl.name, t.Name, o.Zone, o.CapacityType, strconv.Itoa(v)}, ".")
			p.cands = append(p.cands, &candidate{
				name: name, pool: pl, typ: t, offering: o, variant: v,
				price: nanoUSD(o.Price), free: slices.Clone(free), use: use, node: nodeOf(name, pl, t, labels),
			})
		}
	}
}

// labelOf is one of labelsOf, as far as NodePools can ask for it.
func labelOf(key string, pl *pool, t *cloudprovider.InstanceType, o cloudprovider.Offering, custom map[string]string) (string, bool) {
	switch key {
	case v1.LabelTopologyZone, ebsZoneLabel:
		return o.Zone, true
	case karpv1.CapacityTypeLabelKey:
		return o.CapacityType, true
	case awsv1.LabelTopologyZoneID:
		return o.ZoneID, o.ZoneID != ""
	}
	if v, ok := t.Labels[key]; ok {
		return v, true
	}
	if v, ok := pl.labels[key]; ok {
		return v, true
	}
	v, ok := custom[key]
	return v, ok
}

// labelsOf are the labels that the machine's Node will carry, hostname excepted.
func labelsOf(pl *pool, t *cloudprovider.InstanceType, o cloudprovider.Offering, custom map[string]string) map[string]string {
	labels := make(map[string]string, len(t.Labels)+len(pl.labels)+len(custom)+8)
	maps.Copy(labels, custom)
	maps.Copy(labels, pl.labels)
	maps.Copy(labels, t.Labels)
	labels[v1.LabelTopologyZone] = o.Zone
	labels[karpv1.CapacityTypeLabelKey] = o.CapacityType
	if o.ZoneID != "" {
		labels[awsv1.LabelTopologyZoneID] = o.ZoneID
	}
	labels[ebsZoneLabel] = o.Zone
	labels[karpv1.NodeRegisteredLabelKey] = "true"
	labels[karpv1.NodeInitializedLabelKey] = "true"
	return labels
}

// PlannedAnnotations is shared by all candidates and never written.
var PlannedAnnotations = map[string]string{PlannedAnnotation: "true"}

func nodeOf(name string, pl *pool, t *cloudprovider.InstanceType, labels map[string]string) *v1.Node {
	labels[v1.LabelHostname] = name
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Annotations: PlannedAnnotations},
		Spec:       v1.NodeSpec{Taints: pl.NodePool.Spec.Template.Spec.Taints},
		Status:     v1.NodeStatus{Capacity: t.Capacity, Allocatable: t.Allocatable},
	}
}

// renamed is the candidate's node as it will be called.
func (c *candidate) renamed(name string) *v1.Node {
	n := c.node.DeepCopy()
	n.Name = name
	n.Labels[v1.LabelHostname] = name
	return n
}

// domainOf names the values that the candidate has for topology keys.
func domainOf(c *candidate, keys []string) string {
	if len(keys) == 0 {
		return ""
	}
	var b strings.Builder
	for _, k := range keys {
		b.WriteString(c.node.Labels[k])
		b.WriteByte(0)
	}
	return b.String()
}

// ask has the Fitter judge the class on every candidate that has room for one of its pods, once.
func (p *planner) ask(c *class) {
	if c.verdicts != nil {
		return
	}
	c.verdicts = make([]Verdict, len(p.cands))
	var names []string
	var at []int
	for i, cand := range p.cands {
		if times(c.request, cand.free) > 0 {
			names = append(names, cand.name)
			at = append(at, i)
		}
	}
	if len(names) > 0 {
		for i, v := range p.f.Fit(c.Pods[0], names) {
			c.verdicts[at[i]] = v
			if v.Terminal && c.terminal == "" {
				c.terminal = v.Reason
			}
		}
	}
	c.domainOK = map[string][]bool{}
	p.capDiversity(c)
	p.rank(c)
}
