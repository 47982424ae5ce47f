// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"slices"
	"time"
)

// Figures is what a run took and cost. Latencies are of the selected pods that
// were first seen before their node was Ready; DaemonSet pods are left out. The
// rest is of the whole cluster.
type Figures struct {
	Pods    []*PodTimes `json:"pods"`
	Binding Binding     `json:"binding"` // of the selected pods
	// Nominated counts selected pods that had a nominated node before they were
	// bound, NominatedBeforeNode those that had it before their Node existed.
	Nominated           int `json:"nominated"`
	NominatedBeforeNode int `json:"nominatedBeforeNode"`

	// FleetAfterPod is (CreateFleet at the endpoint − pod's first appearance) of
	// pods that are alone on their claim, without the run's first launch, which
	// stands apart because there is no launch template yet.
	FleetAfterPod      Dist          `json:"fleetAfterPod"`
	FirstFleetAfterPod time.Duration `json:"firstFleetAfterPodNs,omitempty"`
	// NominatedAfterPod is (nominated node written − pod's first appearance).
	NominatedAfterPod Dist `json:"nominatedAfterPod"`
	// ClaimAfterPod is (NodeClaim's − pod's first appearance), of the first pod of each claim.
	ClaimAfterPod Dist `json:"claimAfterPod"`
	// BoundAfterReady is (bound − node Ready).
	BoundAfterReady Dist `json:"boundAfterReady"`
	// BoundAfterPod is (bound − pod's first appearance).
	BoundAfterPod Dist `json:"boundAfterPod"`

	Claims          int            `json:"claims"`    // ever
	Instances       int            `json:"instances"` // ever
	InstanceTypes   map[string]int `json:"instanceTypes"`
	Calls           map[string]int `json:"calls"`     // AWS calls by action; "Action (dry run)", "Action (error code)"
	PeakCalls       map[string]int `json:"peakCalls"` // most AWS calls of an action within one second
	PeakUSDPerHour  float64        `json:"peakUSDPerHour"`
	TotalUSD        float64        `json:"totalUSD"`
	PeakVCPUs       float64        `json:"peakVCPUs"` // of the instances
	Marks           []MarkFigures  `json:"marks"`
	USDPerHourAtEnd float64        `json:"usdPerHourAtEnd"`
}

// MarkFigures is the state at a mark, and what the selected pods did since the
// mark before it.
type MarkFigures struct {
	Name          string        `json:"name"`
	Time          time.Time     `json:"time"`
	Since         time.Duration `json:"sinceNs"` // the mark before; 0 for the first
	USDPerHour    float64       `json:"usdPerHour"`
	Instances     int           `json:"instances"` // that exist
	Claims        int           `json:"claims"`    // that exist
	Bound         int           `json:"bound"`     // pods bound since the mark before
	PodsPerSecond float64       `json:"podsPerSecond"`
}

// Figures measures up to end.
func (s *State) Figures(end time.Time, sel PodSelector) Figures {
	l := newLinks(s)
	f := Figures{
		Pods:            s.podTimes(l, sel),
		Claims:          len(l.claims),
		Instances:       len(s.instances),
		InstanceTypes:   map[string]int{},
		Calls:           map[string]int{},
		PeakCalls:       s.peakCalls(),
		PeakUSDPerHour:  s.peakUSDPerHour(),
		USDPerHourAtEnd: s.USDPerHourAt(end),
		TotalUSD:        s.totalUSD(end),
	}
	for _, instance := range s.instances {
		f.InstanceTypes[instance.InstanceType]++
		f.PeakVCPUs = max(f.PeakVCPUs, s.vcpusAt(instance.LaunchedAt.Time))
	}
	for _, call := range s.calls {
		action := call.Action
		switch {
		case call.DryRun:
			action += " (dry run)"
		case call.Code != "":
			action += " (" + call.Code + ")"
		}
		f.Calls[action]++
	}
	f.Binding = bindingOf(f.Pods)
	f.latencies(s.firstFleet())
	f.Marks = s.markFigures(l, f.Pods)
	return f
}

// latencies fills in those that belong to provisioning.
func (f *Figures) latencies(firstFleet time.Time) {
	onClaim := map[string]int{}
	for _, pod := range f.Pods {
		if pod.NodeClaim != "" && !pod.daemonSet {
			onClaim[pod.NodeClaim]++
		}
	}
	var fleet, nominated, claim, afterReady, afterPod []time.Duration
	claimed := map[string]bool{}
	for _, pod := range f.Pods {
		if !pod.Nominated.IsZero() && (pod.Bound.IsZero() || pod.Nominated.Before(pod.Bound)) {
			f.Nominated++
		}
		if pod.BeforeNode {
			f.NominatedBeforeNode++
		}
		if pod.listed || pod.daemonSet {
			continue
		}
		if !pod.Nominated.IsZero() {
			nominated = append(nominated, pod.Nominated.Sub(pod.FirstSeen))
		}
		if pod.waited() && !pod.Bound.IsZero() {
			afterReady = append(afterReady, pod.Bound.Sub(pod.NodeReady))
			afterPod = append(afterPod, pod.Bound.Sub(pod.FirstSeen))
		}
		if pod.ClaimSeen.After(pod.FirstSeen) && !claimed[pod.NodeClaim] {
			claimed[pod.NodeClaim] = true
			claim = append(claim, pod.ClaimSeen.Sub(pod.FirstSeen))
		}
		if onClaim[pod.NodeClaim] != 1 || !pod.CreateFleet.After(pod.FirstSeen) {
			continue
		}
		if pod.CreateFleet.Equal(firstFleet) {
			f.FirstFleetAfterPod = pod.CreateFleet.Sub(pod.FirstSeen)
		} else {
			fleet = append(fleet, pod.CreateFleet.Sub(pod.FirstSeen))
		}
	}
	f.FleetAfterPod, f.NominatedAfterPod, f.ClaimAfterPod = newDist(fleet), newDist(nominated), newDist(claim)
	f.BoundAfterReady, f.BoundAfterPod = newDist(afterReady), newDist(afterPod)
}

// firstFleet is the arrival of the run's first launch; zero if there was none.
func (s *State) firstFleet() time.Time {
	for i := range s.calls {
		if s.calls[i].launches() {
			return s.calls[i].Time.Time
		}
	}
	return time.Time{}
}

func (s *State) vcpusAt(t time.Time) float64 {
	sum := 0.0
	for _, instance := range s.instances {
		if instance.aliveAt(t) {
			sum += instance.VCPUs
		}
	}
	return sum
}

func (s *State) markFigures(l *links, pods []*PodTimes) []MarkFigures {
	var figures []MarkFigures
	for i, m := range s.marks {
		f := MarkFigures{Name: m.name, Time: m.time, USDPerHour: s.USDPerHourAt(m.time)}
		for _, instance := range s.instances {
			if instance.aliveAt(m.time) {
				f.Instances++
			}
		}
		for _, life := range l.claims {
			if !life.seen.After(m.time) && (life.deleted.IsZero() || life.deleted.After(m.time)) {
				f.Claims++
			}
		}
		if i > 0 {
			before := s.marks[i-1].time
			f.Since = m.time.Sub(before)
			f.Bound, f.PodsPerSecond = boundBetween(pods, before, m.time)
		}
		figures = append(figures, f)
	}
	return figures
}

// boundBetween counts pods bound after from and not after to; the rate is from
// from to the last of them.
func boundBetween(pods []*PodTimes, from, to time.Time) (int, float64) {
	var bound []time.Time
	for _, pod := range pods {
		if !pod.listed && pod.Bound.After(from) && !pod.Bound.After(to) {
			bound = append(bound, pod.Bound)
		}
	}
	if len(bound) == 0 {
		return 0, 0
	}
	last := slices.MaxFunc(bound, time.Time.Compare)
	return len(bound), rate(len(bound), last.Sub(from))
}

// peakCalls is the most calls of each action within one second.
func (s *State) peakCalls() map[string]int {
	peaks, recent := map[string]int{}, map[string][]time.Time{}
	for i := range s.calls {
		call := &s.calls[i]
		within := append(recent[call.Action], call.Time.Time)
		for call.Time.Sub(within[0]) >= time.Second {
			within = within[1:]
		}
		recent[call.Action] = within
		peaks[call.Action] = max(peaks[call.Action], len(within))
	}
	return peaks
}
