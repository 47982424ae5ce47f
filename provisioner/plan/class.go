// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/binary"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/jit-scheduler/jit-scheduler/provisioner/scheduling"
)

// Classes groups pods that are the same for scheduling. Classes are in the order of their first pods, and pods of a
// class keep their order, so a list in queue order gives classes in queue order.
func Classes(pods []*v1.Pod) []Class {
	var out []Class
	index := make(map[string]int)
	var buf []byte
	for _, pod := range pods {
		requests := scheduling.Requests(pod)
		buf = appendSignature(buf[:0], pod, requests)
		if i, ok := index[string(buf)]; ok {
			out[i].Pods = append(out[i].Pods, pod)
			continue
		}
		index[string(buf)] = len(out)
		out = append(out, Class{Pods: []*v1.Pod{pod}, Requests: requests, Independent: Independent(pod)})
	}
	return out
}

// Signature is equal for pods that are the same for scheduling, whoever owns them. It is for comparing, not reading.
func Signature(pod *v1.Pod) string {
	return string(appendSignature(nil, pod, scheduling.Requests(pod)))
}

// Independent says that placing the pod changes nothing for the next one like it but the room on its node. It sees
// the pod alone: a profile with default spread constraints of its own must clear Class.Independent for their pods.
func Independent(pod *v1.Pod) bool {
	for _, c := range pod.Spec.TopologySpreadConstraints {
		if c.WhenUnsatisfiable == v1.DoNotSchedule {
			return false
		}
	}
	if a := pod.Spec.Affinity; a != nil {
		if a.PodAffinity != nil && len(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 ||
			a.PodAntiAffinity != nil && len(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 {
			return false
		}
	}
	return len(hostPorts(pod)) == 0 && len(pod.Spec.ResourceClaims) == 0 &&
		!slices.ContainsFunc(pod.Spec.Volumes, volumeMatters)
}

// perPodLabels differ between pods of one owner, or between revisions, and are left out of the signature unless the
// pod's own constraints look at them.
var perPodLabels = map[string]bool{
	"pod-template-hash":                        true,
	"controller-revision-hash":                 true,
	"pod-template-generation":                  true,
	"statefulset.kubernetes.io/pod-name":       true,
	"apps.kubernetes.io/pod-index":             true,
	"batch.kubernetes.io/job-completion-index": true,
	"batch.kubernetes.io/controller-uid":       true,
	"controller-uid":                           true,
}

// signer appends length-prefixed fields, so that no two lists of fields read the same.
type signer struct{ buf []byte }

func (s *signer) str(v string) {
	s.buf = binary.AppendUvarint(s.buf, uint64(len(v)))
	s.buf = append(s.buf, v...)
}

func (s *signer) num(n int64) { s.buf = binary.AppendVarint(s.buf, n) }

// object appends an API object in its wire form, which orders maps.
func (s *signer) object(o interface{ Marshal() ([]byte, error) }) {
	b, err := o.Marshal()
	if err != nil {
		s.str(err.Error())
		return
	}
	s.str(string(b))
}

func (s *signer) labels(l map[string]string, skip func(string) bool) {
	keys := make([]string, 0, len(l))
	for k := range l {
		if !skip(k) {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	s.num(int64(len(keys)))
	for _, k := range keys {
		s.str(k)
		s.str(l[k])
	}
}

func appendSignature(buf []byte, pod *v1.Pod, requests v1.ResourceList) []byte {
	s := &signer{buf}
	spec := &pod.Spec
	s.str(pod.Namespace)
	s.str(spec.SchedulerName)
	priority := int64(0)
	if spec.Priority != nil {
		priority = int64(*spec.Priority)
	}
	s.num(priority)
	if spec.PreemptionPolicy != nil {
		s.str(string(*spec.PreemptionPolicy))
	}
	own := ownLabelKeys(pod)
	s.labels(pod.Labels, func(k string) bool { return perPodLabels[k] && !own[k] })
	s.labels(spec.NodeSelector, func(string) bool { return false })
	s.requests(requests)
	s.num(int64(len(spec.Tolerations)))
	for i := range spec.Tolerations {
		s.object(&spec.Tolerations[i])
	}
	if spec.Affinity != nil {
		s.object(spec.Affinity)
	}
	s.num(int64(len(spec.TopologySpreadConstraints)))
	for i := range spec.TopologySpreadConstraints {
		s.object(&spec.TopologySpreadConstraints[i])
	}
	s.things(pod)
	return s.buf
}

// things are the parts of a pod that name something beside the node: ports, volumes, claims, owners that pin it.
func (s *signer) things(pod *v1.Pod) {
	ports := hostPorts(pod)
	s.num(int64(len(ports)))
	for _, p := range ports {
		s.str(p.HostIP)
		s.str(string(p.Protocol))
		s.num(int64(p.HostPort))
	}
	for i := range pod.Spec.Volumes {
		if volumeMatters(pod.Spec.Volumes[i]) {
			s.object(&pod.Spec.Volumes[i])
			if pod.Spec.Volumes[i].Ephemeral != nil { // its claim is named after the pod and may exist already
				s.str(pod.Name)
			}
		}
	}
	for i := range pod.Spec.ResourceClaims {
		s.object(&pod.Spec.ResourceClaims[i])
	}
	for i := range pod.Status.ResourceClaimStatuses {
		s.object(&pod.Status.ResourceClaimStatuses[i])
	}
	if ownedByDaemonSet(pod) {
		s.str("DaemonSet")
	}
	if pod.Spec.OS != nil {
		s.str(string(pod.Spec.OS.Name))
	}
}

func (s *signer) requests(l v1.ResourceList) {
	names := make([]string, 0, len(l))
	for n := range l {
		names = append(names, string(n))
	}
	slices.Sort(names)
	for _, n := range names {
		s.str(n)
		q := l[v1.ResourceName(n)]
		s.num(units(v1.ResourceName(n), q))
	}
}

// ownLabelKeys are the label keys that the pod's own spread and affinity look at.
func ownLabelKeys(pod *v1.Pod) map[string]bool {
	var out map[string]bool
	add := func(keys ...string) {
		if out == nil {
			out = map[string]bool{}
		}
		for _, k := range keys {
			out[k] = true
		}
	}
	for _, t := range topologyTerms(pod) {
		add(t.labelKeys...)
		if t.selector == nil {
			continue
		}
		for k := range t.selector.MatchLabels {
			add(k)
		}
		for _, e := range t.selector.MatchExpressions {
			add(e.Key)
		}
	}
	return out
}

func hostPorts(pod *v1.Pod) []v1.ContainerPort {
	var out []v1.ContainerPort
	for _, cs := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range cs {
			for _, p := range cs[i].Ports {
				if p.HostPort > 0 {
					out = append(out, p)
				}
			}
		}
	}
	return out
}

// volumeMatters is false for the volumes that no Filter plugin looks at.
func volumeMatters(v v1.Volume) bool {
	s := &v.VolumeSource
	return s.ConfigMap == nil && s.Secret == nil && s.Projected == nil && s.DownwardAPI == nil && s.EmptyDir == nil &&
		s.HostPath == nil && s.NFS == nil && s.Image == nil
}

func ownedByDaemonSet(pod *v1.Pod) bool {
	return slices.ContainsFunc(pod.OwnerReferences, func(o metaOwner) bool {
		return o.Kind == "DaemonSet" && o.Controller != nil && *o.Controller
	})
}
