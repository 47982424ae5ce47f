// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"maps"
	"strconv"
	"time"

	"github.com/awslabs/operatorpkg/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
)

// own is what a claim's object must say: the part of it that is ours to write. Empty fields are not ours.
type own struct {
	labels, annotations           map[string]string
	providerID, imageID, nodeName string
	capacity, allocatable         v1.ResourceList
	lastPodEvent                  metav1.Time
	conditions                    map[string]metav1.Condition
	absent                        map[string]bool
	// rev counts changes; checked and seen remember what the last comparison was made with.
	rev, checked int64
	seen         *karpv1.NodeClaim
}

// conditionOrder is the order in which conditions are written.
var conditionOrder = []string{
	karpv1.ConditionTypeLaunched, karpv1.ConditionTypeRegistered, karpv1.ConditionTypeInitialized,
	karpv1.ConditionTypeConsolidatable, karpv1.ConditionTypeDisruptionReason, karpv1.ConditionTypeDrained,
	karpv1.ConditionTypeInstanceTerminating, status.ConditionReady,
}

func (o *own) adopt(object *karpv1.NodeClaim) {
	for i := range object.Status.Conditions {
		c := metav1.Condition(object.Status.Conditions[i])
		if o.conditions == nil {
			o.conditions = map[string]metav1.Condition{}
		}
		o.conditions[c.Type] = c
	}
	o.lastPodEvent = object.Status.LastPodEventTime
}

func (o *own) trueSince(kind string) (time.Time, bool) {
	c, ok := o.conditions[kind]
	return c.LastTransitionTime.Time, ok && c.Status == metav1.ConditionTrue
}

func (o *own) annotate(key, value string) {
	if o.annotations[key] != value {
		o.annotations = maps.Clone(o.annotations)
		if o.annotations == nil {
			o.annotations = map[string]string{}
		}
		o.annotations[key] = value
		o.rev++
	}
}

func (o *own) clear(kind string) {
	if _, ok := o.conditions[kind]; ok || !o.absent[kind] {
		delete(o.conditions, kind)
		if o.absent == nil {
			o.absent = map[string]bool{}
		}
		o.absent[kind] = true
		o.rev++
	}
}

// setCondition changes a condition; the transition time moves only with the status.
func (s *State) setCondition(c *claim, kind string, value metav1.ConditionStatus, reason, message string) {
	o := &c.own
	was, ok := o.conditions[kind]
	if ok && was.Status == value && was.Reason == reason && was.Message == message {
		return
	}
	at := was.LastTransitionTime
	if !ok || was.Status != value {
		at = metav1.NewTime(s.now.Truncate(time.Second))
	}
	if o.conditions == nil {
		o.conditions = map[string]metav1.Condition{}
	}
	o.conditions[kind] = metav1.Condition{
		Type: kind, Status: value, Reason: reason, Message: message,
		LastTransitionTime: at, ObservedGeneration: c.object.Generation,
	}
	delete(o.absent, kind)
	o.rev++
	switch kind {
	case karpv1.ConditionTypeLaunched, karpv1.ConditionTypeRegistered, karpv1.ConditionTypeInitialized:
		s.setReady(c)
	}
}

func (s *State) setTrue(c *claim, kind string) {
	s.setCondition(c, kind, metav1.ConditionTrue, kind, "")
}

// setReady derives the root condition from the three it stands on.
func (s *State) setReady(c *claim) {
	value, reason, message := metav1.ConditionTrue, status.ConditionReady, ""
	for _, kind := range conditionOrder[:3] {
		part, ok := c.own.conditions[kind]
		if ok && part.Status == metav1.ConditionTrue {
			continue
		}
		if ok && part.Status == metav1.ConditionFalse {
			value, reason = metav1.ConditionFalse, "UnhealthyDependents"
		} else if value != metav1.ConditionFalse {
			value, reason = metav1.ConditionUnknown, "ReconcilingDependents"
		}
		if message != "" {
			message += ", "
		}
		message += kind + "=" + string(orUnknown(part.Status))
	}
	s.setCondition(c, status.ConditionReady, value, reason, message)
}

func orUnknown(v metav1.ConditionStatus) metav1.ConditionStatus {
	if v == "" {
		return metav1.ConditionUnknown
	}
	return v
}

// patch writes what the object does not say yet.
func (s *State) patch(c *claim) {
	o := &c.own
	if o.rev == 0 || !c.exists || c.objectGone || (o.checked == o.rev && o.seen == c.object) {
		return
	}
	want := o.overlay(c.object)
	if equality.Semantic.DeepEqual(want.Labels, c.object.Labels) &&
		equality.Semantic.DeepEqual(want.Annotations, c.object.Annotations) &&
		equality.Semantic.DeepEqual(want.Status, c.object.Status) {
		o.checked, o.seen = o.rev, c.object
		return
	}
	s.send(c, PatchClaim{Claim: want}, strconv.FormatInt(o.rev, 10), s.cfg.ActionTimeout)
}

func (o *own) overlay(object *karpv1.NodeClaim) *karpv1.NodeClaim {
	out := object.DeepCopy()
	for k, v := range o.labels {
		if out.Labels == nil {
			out.Labels = map[string]string{}
		}
		out.Labels[k] = v
	}
	for k, v := range o.annotations {
		if out.Annotations == nil {
			out.Annotations = map[string]string{}
		}
		out.Annotations[k] = v
	}
	st := &out.Status
	overlayString(&st.ProviderID, o.providerID)
	overlayString(&st.ImageID, o.imageID)
	overlayString(&st.NodeName, o.nodeName)
	if o.capacity != nil {
		st.Capacity, st.Allocatable = o.capacity, o.allocatable
	}
	if !o.lastPodEvent.IsZero() {
		st.LastPodEventTime = o.lastPodEvent
	}
	st.Conditions = o.overlayConditions(st.Conditions)
	return out
}

func overlayString(field *string, value string) {
	if value != "" {
		*field = value
	}
}

func (o *own) overlayConditions(have []status.Condition) []status.Condition {
	var out []status.Condition
	done := map[string]bool{}
	for i := range have {
		kind := have[i].Type
		if o.absent[kind] {
			continue
		}
		want, ok := o.conditions[kind]
		if ok && (want.Status != have[i].Status || want.Reason != have[i].Reason || want.Message != have[i].Message) {
			out = append(out, status.Condition(want))
		} else {
			out = append(out, have[i])
		}
		done[kind] = true
	}
	for _, kind := range conditionOrder {
		if want, ok := o.conditions[kind]; ok && !done[kind] {
			out = append(out, status.Condition(want))
		}
	}
	return out
}

// describe notes what the machine is: the labels, capacity and status of a launched claim.
func (c *claim) describe(inst *cloudprovider.Instance, t *cloudprovider.InstanceType) {
	labels := map[string]string{}
	if t != nil {
		maps.Copy(labels, t.Labels)
		c.own.capacity, c.own.allocatable = t.For(c.object.Spec.Resources.Requests)
	}
	offering := cloudprovider.Offering{Zone: inst.Zone, ZoneID: inst.ZoneID, CapacityType: inst.CapacityType}.Labels()
	maps.DeleteFunc(offering, func(_, v string) bool { return v == "" })
	maps.Copy(labels, offering)
	labels[v1.LabelInstanceTypeStable] = inst.InstanceType
	maps.DeleteFunc(labels, func(k, _ string) bool { return c.object.Labels[k] != "" }) // what the claim itself says stands
	c.own.labels = labels
	c.own.providerID, c.own.imageID = inst.ProviderID, inst.ImageID
	c.own.rev++
}
