// SPDX-License-Identifier: Apache-2.0

package kubescheduler_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/jit-scheduler/jit-scheduler/provisioner/plan"
	"github.com/jit-scheduler/jit-scheduler/provisioner/simtest"
)

// fitting runs f with a Fitter over the objects.
func fitting(t *testing.T, objects []runtime.Object, f func(t *testing.T, c *simtest.Cluster, f plan.Fitter)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c, l := start(t, 0, simtest.Options{Objects: objects})
		l.mu.Lock()
		defer l.mu.Unlock()
		fitter, err := c.Adapter.NewFitter("jit-scheduler")
		if err != nil {
			t.Fatal(err)
		}
		f(t, c, fitter)
	})
}

func pods(n int, cpu string) []*v1.Pod {
	out := make([]*v1.Pod, n)
	for i := range out {
		out[i] = pod(fmt.Sprintf("p%d", i), cpu)
	}
	return out
}

// spread makes pods keep to a skew of one.
func spread(key string, ps ...*v1.Pod) []*v1.Pod {
	for _, p := range ps {
		p.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: v1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}},
		}}
	}
	return ps
}

func zoned(n *v1.Node, zone string) *v1.Node {
	n.Labels[v1.LabelTopologyZone] = zone
	return n
}

func fits(vs []plan.Verdict) []bool {
	out := make([]bool, len(vs))
	for i, v := range vs {
		out[i] = v.Fits
	}
	return out
}

func TestFitterReady(t *testing.T) {
	cordoned := machine("cordoned")
	cordoned.Spec.Unschedulable = true
	nodes := []runtime.Object{machine("a"), machine("b"), held("held"), cordoned}
	for name, tt := range map[string]struct {
		class plan.Class
		limit int
		want  int
	}{
		"all that fit":       {class: plan.Class{Pods: pods(20, "1"), Independent: true}, limit: 20, want: 8},
		"no more than asked": {class: plan.Class{Pods: pods(20, "1"), Independent: true}, limit: 3, want: 3},
		"one by one":         {class: plan.Class{Pods: pods(20, "1")}, limit: 20, want: 8},
		// The held and the cordoned node are empty domains, as in any cycle.
		"spread over hosts":    {class: plan.Class{Pods: spread(v1.LabelHostname, pods(20, "2")...)}, limit: 20, want: 2},
		"too big for any":      {class: plan.Class{Pods: pods(1, "5"), Independent: true}, limit: 1},
		"fewer pods than room": {class: plan.Class{Pods: pods(2, "1"), Independent: true}, limit: 20, want: 2},
	} {
		t.Run(name, func(t *testing.T) {
			fitting(t, nodes, func(t *testing.T, _ *simtest.Cluster, f plan.Fitter) {
				if got := f.Ready(&tt.class, tt.limit); got != tt.want {
					t.Errorf("Ready = %d, want %d", got, tt.want)
				}
				if tt.want == 8 {
					if again := f.Ready(&plan.Class{Pods: []*v1.Pod{pod("late", "1")}}, 1); again != 0 {
						t.Error("pods that were counted are not placed")
					}
				}
			})
		})
	}
}

func TestFitterFit(t *testing.T) {
	fitting(t, []runtime.Object{machine("ready")}, func(t *testing.T, c *simtest.Cluster, _ plan.Fitter) {
		c.Adapter.AddPlannedNode(machine("claim-1"))
		f, err := c.Adapter.NewFitter("jit-scheduler")
		if err != nil {
			t.Fatal(err)
		}
		f.Candidates([]plan.Candidate{{Node: machine("c1")}, {Node: zoned(machine("c2"), "b")}})
		names := []string{"ready", "claim-1", "c1", "c2", "unheard-of"}
		if diff := cmp.Diff([]bool{true, true, true, true, false}, fits(f.Fit(pod("p", "4"), names))); diff != "" {
			t.Errorf("one pod (-want +got):\n%s", diff)
		}
		four := pod("four", "4")
		f.Place("claim-1", four, four)
		f.Place("c1", pod("five", "1"))
		vs := f.Fit(pod("p", "4"), names)
		if diff := cmp.Diff([]bool{true, false, false, true, false}, fits(vs)); diff != "" {
			t.Errorf("after Place (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(plan.Verdict{Plugin: "NodeResourcesFit", Reason: "Insufficient cpu"}, vs[1]); diff != "" {
			t.Errorf("verdict (-want +got):\n%s", diff)
		}
		f.Open("c1", "pool#1")
		f.Candidates([]plan.Candidate{{Node: machine("c3")}})
		if diff := cmp.Diff([]bool{true, false, true, false}, fits(f.Fit(pod("p", "3"), []string{"pool#1", "c2", "c3", "c1"}))); diff != "" {
			t.Errorf("after Open (-want +got):\n%s", diff)
		}
		if fits(f.Fit(pod("p", "4"), []string{"pool#1"}))[0] {
			t.Error("opened node lost its pods")
		}

		fresh, err := c.Adapter.NewFitter("jit-scheduler")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]bool{true, true, false}, fits(fresh.Fit(pod("p", "4"), []string{"ready", "claim-1", "pool#1"}))); diff != "" {
			t.Errorf("a new Fitter sees the last one's pods (-want +got):\n%s", diff)
		}
	})
}

// TestFitterSpread: zones that only candidates have are domains, and placed pods move the skew.
func TestFitterSpread(t *testing.T) {
	fitting(t, nil, func(t *testing.T, _ *simtest.Cluster, f plan.Fitter) {
		f.Candidates([]plan.Candidate{{Node: zoned(machine("a1"), "a")}, {Node: zoned(machine("b1"), "b")}, {Node: zoned(machine("c1"), "c")}})
		names := []string{"a1", "b1", "c1"}
		ps := spread(v1.LabelTopologyZone, pods(4, "1")...)
		want := [][]bool{{true, true, true}, {false, true, true}, {false, false, true}, {true, true, true}}
		for i, node := range []string{"a1", "b1", "c1", "a1"} {
			if diff := cmp.Diff(want[i], fits(f.Fit(ps[3], names))); diff != "" {
				t.Errorf("before pod %d (-want +got):\n%s", i, diff)
			}
			f.Place(node, ps[i])
		}
	})
}

// TestFitterAntiAffinity: a placed pod that keeps others away is heard of by pods that have no terms themselves.
func TestFitterAntiAffinity(t *testing.T) {
	fitting(t, nil, func(t *testing.T, _ *simtest.Cluster, f plan.Fitter) {
		f.Candidates([]plan.Candidate{{Node: machine("c1")}, {Node: machine("c2")}})
		p, names := pod("p", "1"), []string{"c1", "c2"}
		if diff := cmp.Diff([]bool{true, true}, fits(f.Fit(p, names))); diff != "" {
			t.Errorf("before (-want +got):\n%s", diff)
		}
		loner := pod("loner", "1")
		loner.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{{
			TopologyKey: v1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}},
		}}}}
		f.Place("c1", loner)
		if diff := cmp.Diff([]bool{false, true}, fits(f.Fit(p, names))); diff != "" {
			t.Errorf("after (-want +got):\n%s", diff)
		}
	})
}

func TestFitterTerminal(t *testing.T) {
	fitting(t, nil, func(t *testing.T, _ *simtest.Cluster, f plan.Fitter) {
		f.Candidates([]plan.Candidate{{Node: machine("c1")}})
		missing := pod("missing", "1")
		missing.Spec.Volumes = []v1.Volume{{Name: "v", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "no"}}}}
		pinned := pod("pinned", "1")
		pinned.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
			MatchFields: []v1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: v1.NodeSelectorOpIn, Values: []string{"ip-1"}}},
		}}}}}
		for name, tt := range map[string]struct {
			pod  *v1.Pod
			want bool
		}{"missing claim": {missing, true}, "pinned by name": {pinned, true}, "too big": {pod("big", "5"), false}} {
			if v := f.Fit(tt.pod, []string{"c1"})[0]; v.Fits || v.Terminal != tt.want {
				t.Errorf("%s: %+v, want terminal %t", name, v, tt.want)
			}
		}
	})
}

// TestFitterDaemons: candidates count the DaemonSet pods that will run there, with their host ports.
func TestFitterDaemons(t *testing.T) {
	agent := pod("agent", "1")
	agent.Spec.Containers[0].Ports = []v1.ContainerPort{{ContainerPort: 9100, HostPort: 9100, Protocol: v1.ProtocolTCP}}
	gpu := pod("gpu", "1")
	gpu.Spec.NodeSelector = map[string]string{"gpu": "yes"}
	tainted := machine("tainted")
	tainted.Spec.Taints = []v1.Taint{{Key: "dedicated", Effect: v1.TaintEffectNoSchedule}}
	fitting(t, nil, func(t *testing.T, _ *simtest.Cluster, f plan.Fitter) {
		daemons := []*v1.Pod{agent, gpu}
		got := f.Candidates([]plan.Candidate{{Node: machine("plain"), Daemons: daemons}, {Node: tainted, Daemons: daemons}})
		names := make([][]string, len(got))
		for i, ds := range got {
			for _, d := range ds {
				names[i] = append(names[i], d.Name)
			}
		}
		if diff := cmp.Diff([][]string{{"agent"}, nil}, names); diff != "" {
			t.Errorf("daemons (-want +got):\n%s", diff)
		}
		port := pod("port", "1")
		port.Spec.Containers[0].Ports = agent.Spec.Containers[0].Ports
		for _, tt := range []struct {
			pod  *v1.Pod
			want bool
		}{{pod("three", "3"), true}, {pod("four", "4"), false}, {port, false}} {
			if v := f.Fit(tt.pod, []string{"plain"})[0]; v.Fits != tt.want {
				t.Errorf("%s: %+v, want fits %t", tt.pod.Name, v, tt.want)
			}
		}
	})
}
