// SPDX-License-Identifier: Apache-2.0

package kubescheduler_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	v1 "k8s.io/api/core/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/jit-scheduler/jit-scheduler/plugins/nodeprovisioning"
	"github.com/jit-scheduler/jit-scheduler/provisioner/simtest"
)

// profile is the built-in configuration with more at its end.
const profile = `
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
profiles:
- schedulerName: jit-scheduler
  plugins:
    multiPoint:
      enabled: [{name: NodeProvisioning}]
      disabled: [{name: NodeUnschedulable}]
    postFilter:
      enabled: [{name: NodeProvisioning}]
%s`

func TestProfilesRefused(t *testing.T) {
	plain := "- schedulerName: jit-scheduler\n  plugins:\n%s"
	config := func(plugins string) string {
		head, _, _ := strings.Cut(profile, "- schedulerName")
		return head + fmt.Sprintf(plain, plugins)
	}
	for name, tt := range map[string]struct {
		config  string
		wantErr string
	}{
		"built-in": {},
		"profile without the plugin": {
			config:  fmt.Sprintf(profile, "- schedulerName: other\n"),
			wantErr: `profile "other": plugins.filter.enabled: NodeProvisioning is missing`,
		},
		"NodeUnschedulable beside it": {
			config:  config("    multiPoint: {enabled: [{name: NodeProvisioning}]}\n    postFilter: {enabled: [{name: NodeProvisioning}]}\n"),
			wantErr: "plugins.filter.enabled: NodeUnschedulable must be disabled",
		},
		"after preemption": {
			config:  config("    multiPoint: {enabled: [{name: NodeProvisioning}], disabled: [{name: NodeUnschedulable}]}\n"),
			wantErr: "plugins.postFilter.enabled: NodeProvisioning must come before DefaultPreemption",
		},
		"without Reserve": {
			config: config("    multiPoint: {disabled: [{name: NodeUnschedulable}]}\n    preFilter: {enabled: [{name: NodeProvisioning}]}\n" +
				"    filter: {enabled: [{name: NodeProvisioning}]}\n    postFilter: {enabled: [{name: NodeProvisioning}]}\n"),
			wantErr: "plugins.reserve.enabled: NodeProvisioning is missing",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				err := simtest.StartError(t, simtest.Options{Config: tt.config, Provisioner: func(*simtest.Cluster) nodeprovisioning.Provisioner { return &ledger{} }})
				if tt.wantErr == "" && err != nil {
					t.Errorf("error = %v, want none", err)
				}
				if tt.wantErr != "" && (err == nil || !strings.Contains(err.Error(), tt.wantErr)) {
					t.Errorf("error = %v, want %s", err, tt.wantErr)
				}
			})
		})
	}
}

// TestSigning: without default spread constraints pods are signed, so batching is on, and by their tolerations.
func TestSigning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spread := "  pluginConfig:\n  - name: PodTopologySpread\n    args: {defaultingType: List, defaultConstraints: []}\n"
		c, _ := start(t, 0, simtest.Options{Config: fmt.Sprintf(profile, spread)})
		sign := c.Scheduler.Profiles["jit-scheduler"].SignPod
		tolerant := pod("t", "1")
		tolerant.Spec.Tolerations = []v1.Toleration{{Operator: v1.TolerationOpExists}}
		one, other, third := sign(t.Context(), pod("a", "1")), sign(t.Context(), pod("b", "1")), sign(t.Context(), tolerant)
		if one == nil || third == nil {
			t.Fatal("pods are not signed: some plugin lacks SignPod")
		}
		if string(one) != string(other) {
			t.Error("equal pods have different signatures")
		}
		if string(one) == string(third) {
			t.Error("tolerations are not in the signature")
		}
	})
}

// spy is an extender that notes what it sees.
type spy struct {
	fwk.Extender
	seen  map[string]bool
	bound []string
}

func (s *spy) Name() string              { return "spy" }
func (s *spy) IsInterested(*v1.Pod) bool { return true }
func (s *spy) IsFilter() bool            { return true }
func (s *spy) IsPrioritizer() bool       { return true }
func (s *spy) IsBinder() bool            { return true }
func (s *spy) IsIgnorable() bool         { return false }
func (s *spy) SupportsPreemption() bool  { return false }
func (s *spy) Bind(b *v1.Binding) error  { s.bound = append(s.bound, b.Target.Name); return nil }
func (s *spy) note(nodes []fwk.NodeInfo) {
	for _, n := range nodes {
		s.seen[n.Node().Name] = true
	}
}

func (s *spy) Filter(_ *v1.Pod, nodes []fwk.NodeInfo) ([]fwk.NodeInfo, extenderv1.FailedNodesMap, extenderv1.FailedNodesMap, error) {
	s.note(nodes)
	return nodes, nil, nil, nil
}

func (s *spy) Prioritize(_ *v1.Pod, nodes []fwk.NodeInfo) (*extenderv1.HostPriorityList, int64, error) {
	s.note(nodes)
	return &extenderv1.HostPriorityList{}, 1, nil
}

// TestExtender: extenders never hear of a planned node, by whatever way it comes.
func TestExtender(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &spy{seen: map[string]bool{}}
		c, _ := start(t, 1, simtest.Options{Prepare: func(sched *scheduler.Scheduler) { sched.Extenders = []fwk.Extender{s} }})
		c.CreatePod(pod("p", "1"))
		synctest.Wait()
		planned := framework.NewNodeInfo()
		planned.SetNode(machine("claim-1"))
		ready := framework.NewNodeInfo()
		ready.SetNode(machine("ready"))
		e := c.Scheduler.Extenders[0]
		if nodes, _, _, _ := e.Filter(pod("q", "1"), []fwk.NodeInfo{planned, ready}); len(nodes) != 1 {
			t.Errorf("Filter let %d nodes pass, want 1", len(nodes))
		}
		if _, _, err := e.Prioritize(pod("q", "1"), []fwk.NodeInfo{planned, ready}); err != nil {
			t.Error(err)
		}
		if err := e.Bind(&v1.Binding{Target: v1.ObjectReference{Name: "claim-1"}}); err == nil {
			t.Error("bound to a planned node")
		}
		if err := e.Bind(&v1.Binding{Target: v1.ObjectReference{Name: "ready"}}); err != nil {
			t.Error(err)
		}
		if s.seen["claim-1"] || !s.seen["ready"] || len(s.bound) != 1 {
			t.Errorf("extender saw %v and bound to %v", s.seen, s.bound)
		}
	})
}
