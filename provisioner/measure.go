// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"context"
	"time"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/jit-scheduler/jit-scheduler/provisioner/allocatable"
	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
	"github.com/jit-scheduler/jit-scheduler/provisioner/lifecycle"
)

// measuredAnnotation of an EC2NodeClass is what its machines turned out to have, for the next process.
const measuredAnnotation = "jit-scheduler.io/measured-allocatable"

const (
	// measuredDelay gathers machines that join together into one write.
	measuredDelay = time.Second
	// measuredRetry is when a write that failed is repeated.
	measuredRetry = 10 * time.Second
)

// sizedTypes are a class's types as its machines are known to be, as long as nothing has changed.
type sizedTypes struct {
	offered, sized []*cloudprovider.InstanceType
	version        int
	until          time.Time
	byName         map[string]*cloudprovider.InstanceType // of offered
}

// instanceTypes are what the class could launch now, with what its machines really have; mu is held.
func (p *Provisioner) instanceTypes(class *awsv1.EC2NodeClass) ([]*cloudprovider.InstanceType, error) {
	s, err := p.sizedTypes(class)
	if err != nil {
		return nil, err
	}
	return s.sized, nil
}

func (p *Provisioner) sizedTypes(class *awsv1.EC2NodeClass) (*sizedTypes, error) {
	offered, err := p.Cloud.InstanceTypes(class)
	if err != nil {
		return nil, err
	}
	s, now := p.sized[class.Name], time.Now()
	if s == nil || !sameSlice(s.offered, offered) {
		s = &sizedTypes{offered: offered, version: -1, byName: make(map[string]*cloudprovider.InstanceType, len(offered))}
		for _, t := range offered {
			s.byName[t.Name] = t
		}
		p.sized[class.Name] = s
	}
	if s.version != p.measured.Version() || !s.until.IsZero() && !now.Before(s.until) {
		s.version = p.measured.Version()
		s.sized, s.until = p.measured.Apply(offered, now)
	}
	return s, nil
}

func sameSlice[T any](a, b []T) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

// learn notes what a machine on its way in really has, before anything is decided about the pods that wait for it.
// Later reports are no more about the machine alone. mu is held.
func (p *Provisioner) learn(node *v1.Node) {
	if c, ok := p.state.ClaimAt(node.Spec.ProviderID); ok && !c.Initialized {
		p.observe(&c, node)
	}
}

// observe compares a node with the estimate for its type. Only a node that boots what the class would boot now teaches
// anything about the next one.
func (p *Provisioner) observe(c *lifecycle.Claim, node *v1.Node) {
	ref := c.Object.Spec.NodeClassRef
	if ref == nil || p.classes[ref.Name] == nil || p.classes[ref.Name].resolved == nil {
		return
	}
	class := p.classes[ref.Name].resolved
	types, err := p.sizedTypes(class)
	if err != nil {
		return
	}
	t := types.byName[node.Labels[v1.LabelInstanceTypeStable]]
	if t == nil || t.ImageID != c.ImageID || c.Object.Annotations[awsv1.AnnotationEC2NodeClassHash] != classHash(class) {
		return
	}
	key, before := allocatable.KeyOf(t), p.measured.Version()
	if !p.measured.Observe(key, node.Name, node.Status.Allocatable, time.Now()) {
		return
	}
	if p.measured.Version() != before {
		has := node.Status.Allocatable
		p.logger().Info("Learned what machines have", "instanceType", t.Name, "image", t.ImageID, "node", node.Name,
			"cpu", has.Cpu(), "memory", has.Memory(), "estimatedCPU", t.Allocatable.Cpu(), "estimatedMemory", t.Allocatable.Memory())
		p.changedLocked()
	}
	p.measuredDue(class.Name, measuredDelay)
}

// recall takes up what earlier processes learned: what they wrote on the class, and what its machines report where
// nothing is written. mu is held; the class has just been resolved for the first time.
func (p *Provisioner) recall(class *awsv1.EC2NodeClass) {
	if err := p.measured.Merge(class.Annotations[measuredAnnotation], time.Now()); err != nil {
		p.logger().Error(err, "Machines are measured again", "ec2NodeClass", class.Name)
	}
	types, err := p.sizedTypes(class)
	if err != nil {
		return
	}
	for c := range p.state.Claims() {
		if ref := c.Object.Spec.NodeClassRef; !c.Registered || c.Node == "" || ref == nil || ref.Name != class.Name {
			continue
		}
		node, err := p.Informers.Core().V1().Nodes().Lister().Get(c.Node)
		if err != nil {
			continue
		}
		if t := types.byName[node.Labels[v1.LabelInstanceTypeStable]]; t != nil && !p.measured.Knows(allocatable.KeyOf(t)) {
			p.observe(&c, node)
		}
	}
}

// measuredDue has what was learned written on the class; mu is held.
func (p *Provisioner) measuredDue(name string, delay time.Duration) {
	st := p.classes[name]
	if st == nil || st.measuredPending || p.ctx == nil {
		return
	}
	st.measuredPending = true
	ctx := p.ctx
	time.AfterFunc(delay, func() {
		if err := p.writeMeasured(ctx, name); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Writing what machines have, will retry", "ec2NodeClass", name)
			p.mu.Lock()
			defer p.mu.Unlock()
			p.measuredDue(name, measuredRetry)
		}
	})
}

func (p *Provisioner) writeMeasured(ctx context.Context, name string) error {
	p.mu.Lock()
	st := p.classes[name]
	if st == nil || ctx.Err() != nil {
		p.mu.Unlock()
		return nil
	}
	st.measuredPending = false
	class := st.class
	types, err := p.sizedTypes(class)
	if err != nil || len(types.offered) == 0 || !class.DeletionTimestamp.IsZero() {
		p.mu.Unlock()
		return nil // the settings are about to change, or the class is
	}
	text := p.measured.Encode(types.offered[0].Settings, time.Now())
	p.mu.Unlock()
	if text == "" {
		return nil
	}
	want := class.DeepCopy()
	want.Annotations = mapOf(want.Annotations, map[string]string{measuredAnnotation: text})
	return p.patch(ctx, nodeClasses, class, want, "")
}
