// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var epoch = time.Date(2026, 3, 18, 12, 0, 0, 0, time.UTC)

// scenario feeds a State: every change is one revision and one second later
// than the one before.
type scenario struct {
	*State

	revision int
	now      time.Time
	exists   map[types.UID]bool
}

func newScenario() *scenario {
	return &scenario{State: NewState("jit-scheduler"), now: epoch, exists: map[types.UID]bool{}}
}

// next stamps a copy's metadata with the next revision.
func (s *scenario) next(m *metav1.ObjectMeta, kind string) Op {
	s.revision++
	s.now = s.now.Add(time.Second)
	m.ResourceVersion = strconv.Itoa(s.revision)
	if m.UID == "" {
		m.UID = types.UID(kind + "/" + m.Namespace + "/" + m.Name)
	}
	if s.exists[m.UID] {
		return Modified
	}
	s.exists[m.UID] = true
	return Added
}

func (s *scenario) pod(pod *corev1.Pod) *scenario {
	pod = pod.DeepCopy()
	op := s.next(&pod.ObjectMeta, "pod")
	s.Observe(Observation{Time: s.now, Op: op, Pod: pod})
	return s
}

func (s *scenario) podGone(pod *corev1.Pod) *scenario {
	pod = pod.DeepCopy()
	s.next(&pod.ObjectMeta, "pod")
	delete(s.exists, pod.UID)
	s.Observe(Observation{Time: s.now, Op: Deleted, Pod: pod})
	return s
}

func (s *scenario) node(node *corev1.Node) *scenario {
	node = node.DeepCopy()
	op := s.next(&node.ObjectMeta, "node")
	s.Observe(Observation{Time: s.now, Op: op, Node: node})
	return s
}

func (s *scenario) nodeGone(node *corev1.Node) *scenario {
	node = node.DeepCopy()
	s.next(&node.ObjectMeta, "node")
	delete(s.exists, node.UID)
	s.Observe(Observation{Time: s.now, Op: Deleted, Node: node})
	return s
}

func (s *scenario) claim(claim *Claim) *scenario {
	copied := *claim
	op := s.next(&copied.ObjectMeta, "claim")
	s.Observe(Observation{Time: s.now, Op: op, Claim: &copied})
	return s
}

func (s *scenario) claimGone(claim *Claim) *scenario {
	copied := *claim
	s.next(&copied.ObjectMeta, "claim")
	delete(s.exists, copied.UID)
	s.Observe(Observation{Time: s.now, Op: Deleted, Claim: &copied})
	return s
}

func (s *scenario) event(about *corev1.Pod, reason, message string) *scenario {
	event := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: about.Namespace, Name: about.Name + "." + reason},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: about.Namespace, Name: about.Name, UID: podUID(about)},
		Reason:         reason,
		Message:        message,
	}
	op := s.next(&event.ObjectMeta, "event")
	s.Observe(Observation{Time: s.now, Op: op, Event: event})
	return s
}

func (s *scenario) pvc(name, selectedNode string) *scenario {
	pvc := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	if selectedNode != "" {
		pvc.Annotations = map[string]string{"volume.kubernetes.io/selected-node": selectedNode}
	}
	op := s.next(&pvc.ObjectMeta, "pvc")
	s.Observe(Observation{Time: s.now, Op: op, PVC: pvc})
	return s
}

// instance launches now.
func (s *scenario) instance(i Instance) *scenario {
	s.now = s.now.Add(time.Second)
	i.LaunchedAt = Stamp{s.now}
	if i.State == "" {
		i.State = "running"
	}
	s.ObserveInstances([]Instance{i})
	return s
}

func (s *scenario) terminate(id string) *scenario {
	s.now = s.now.Add(time.Second)
	i := s.instances[id]
	i.State, i.TerminatedAt = "terminated", Stamp{s.now}
	s.ObserveInstances([]Instance{i})
	return s
}

func (s *scenario) call(c Call) *scenario {
	s.now = s.now.Add(time.Second)
	c.Seq, c.Time = s.lastCall()+1, Stamp{s.now}
	s.ObserveCalls([]Call{c})
	return s
}

func (s *scenario) wait(d time.Duration) *scenario {
	s.now = s.now.Add(d)
	return s
}

func podUID(pod *corev1.Pod) types.UID { return types.UID("pod/" + pod.Namespace + "/" + pod.Name) }

// pod makes a pod for jit-scheduler that requests 1 CPU.
func pod(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"app": "inflate"}},
		Spec: corev1.PodSpec{
			SchedulerName: "jit-scheduler",
			Containers:    []corev1.Container{{Name: "c", Resources: requests("1", "")}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	for _, c := range change {
		c(p)
	}
	return p
}

func requests(cpu, memory string) corev1.ResourceRequirements {
	list := corev1.ResourceList{}
	if cpu != "" {
		list[corev1.ResourceCPU] = resource.MustParse(cpu)
	}
	if memory != "" {
		list[corev1.ResourceMemory] = resource.MustParse(memory)
	}
	return corev1.ResourceRequirements{Requests: list}
}

func on(node string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.NodeName = node } }

func nominated(node string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.NominatedNodeName = node }
}

func byScheduler(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.SchedulerName = name }
}

func phase(phase corev1.PodPhase, reason string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Phase, p.Status.Reason = phase, reason }
}

func daemon(p *corev1.Pod) {
	controller := true
	p.Spec.SchedulerName = "default-scheduler"
	p.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Name: "d", Controller: &controller}}
}

func toleration(key string, effect corev1.TaintEffect) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Tolerations = append(p.Spec.Tolerations,
			corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: effect})
	}
}

func condition(kind corev1.PodConditionType, status corev1.ConditionStatus, reason, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions,
			corev1.PodCondition{Type: kind, Status: status, Reason: reason, Message: message})
	}
}

// node makes a Ready node of 4 CPUs, 8 GiB and 10 pods in NodePool default.
func node(name string, change ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"karpenter.sh/nodepool": "default"}},
		Spec:       corev1.NodeSpec{ProviderID: "aws:///us-east-1a/i-" + name},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{
				corev1.ResourceCPU:    resource.MustParse("4"),
				corev1.ResourceMemory: resource.MustParse("8Gi"),
				corev1.ResourcePods:   resource.MustParse("10"),
			},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
	for _, c := range change {
		c(n)
	}
	return n
}

func notReady(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse }

func heldNode(n *corev1.Node) {
	n.Spec.Unschedulable = true
	n.Annotations = map[string]string{"jit-scheduler.io/hold": "2026-03-18T12:10:00Z"}
}

func allocatable(name corev1.ResourceName, amount string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Status.Allocatable[name] = resource.MustParse(amount) }
}

// claimOn makes a claim of NodePool default for 4 CPUs; its node, if any, is node's.
func claimOn(name, nodeName string) *Claim {
	c := &Claim{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"karpenter.sh/nodepool": "default"}}}
	c.Spec.Resources.Requests = requests("4", "").Requests
	if nodeName != "" {
		c.Status.NodeName = nodeName
		c.Status.ProviderID = "aws:///us-east-1a/i-" + nodeName
	}
	return c
}

// instanceOf is the instance of a claim's node.
func instanceOf(claim, nodeName string) Instance {
	return Instance{
		ID: "i-" + nodeName, InstanceType: "m5.xlarge", VCPUs: 4, PriceUSDPerHour: 0.192, NodeName: nodeName,
		Tags: map[string]string{
			"karpenter.sh/nodeclaim": claim, "karpenter.sh/nodepool": "default", "karpenter.k8s.aws/ec2nodeclass": "default",
			"eks:eks-cluster-name": "demo", "kubernetes.io/cluster/demo": "owned",
		},
	}
}

// violationsOf judges by one invariant and gives "subject: message".
func (s *scenario) violationsOf(name string, rules Rules) []string {
	rules.Skip = map[string]string{}
	for other := range invariants {
		if other != name {
			rules.Skip[other] = "not under test"
		}
	}
	var found []string
	for _, v := range s.Check(s.now, rules) {
		found = append(found, v.Subject+": "+v.Message)
	}
	slices.Sort(found)
	return found
}

// invariantCase is one run and what an invariant must say of it.
type invariantCase struct {
	run   func(*scenario)
	rules Rules
	want  []string // nil for a run that passes
}

func testInvariant(t *testing.T, name string, cases map[string]invariantCase) {
	t.Helper()
	for title, tc := range cases {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			s := newScenario()
			tc.run(s)
			if diff := cmp.Diff(tc.want, s.violationsOf(name, tc.rules)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		})
	}
}

// goodRun is one pod's way onto a machine of its own, and all gone again.
func goodRun(s *scenario) {
	p, ds := pod("p"), pod("ds", daemon, toleration("node.kubernetes.io/not-ready", corev1.TaintEffectNoSchedule))
	s.pod(p)
	s.pod(pod("p", nominated("default-a"))).claim(claimOn("default-a", ""))
	s.call(Call{Action: "CreateFleet", Params: map[string]any{"ClientToken": "t1"}, AccessKey: "A"})
	i := instanceOf("default-a", "n1")
	i.ClientToken = "t1"
	s.instance(i).claim(claimOn("default-a", "n1"))
	s.node(node("n1", notReady, heldNode)).pod(ds)
	ds.Spec.NodeName = "n1"
	s.pod(ds).node(node("n1", heldNode))
	s.pod(pod("p", nominated("default-a"), on("n1"))).node(node("n1"))
	s.wait(time.Minute)
	s.podGone(pod("p", on("n1"))).podGone(ds)
	s.nodeGone(node("n1")).terminate("i-n1").claimGone(claimOn("default-a", "n1"))
}

func TestGoodRunPasses(t *testing.T) {
	t.Parallel()
	s := newScenario()
	goodRun(s)
	rules := Rules{
		WantNothingLeft: true,
		Limits:          map[string]float64{"default": 4},
		Replicas:        []Replica{{Name: "a", AccessKey: "A"}, {Name: "b", AccessKey: "B"}},
	}
	s.metrics = []string{"scheduler_pod_scheduled_after_flush_total 0\n"}
	if diff := cmp.Diff([]Violation(nil), s.Check(s.now, rules)); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
}

// Watches of different kinds may deliver in any order: what was true is decided
// by revision.
func TestOrderOfWatchesDoesNotMatter(t *testing.T) {
	t.Parallel()
	s := newScenario()
	goodRun(s)
	for name, order := range map[string]func(a, b Observation) int{
		"nodes last": func(a, b Observation) int { return kindRank(a) - kindRank(b) },
		"pods last":  func(a, b Observation) int { return kindRank(b) - kindRank(a) },
	} {
		shuffled := NewState("jit-scheduler")
		shuffled.ObserveInstances(s.instancesByLaunch())
		journal := slices.Clone(s.journal)
		slices.SortStableFunc(journal, order)
		for _, o := range journal {
			shuffled.Observe(o)
		}
		if diff := cmp.Diff([]Violation(nil), shuffled.Check(s.now, Rules{WantNothingLeft: true})); diff != "" {
			t.Errorf("%s: violations (-want +got):\n%s", name, diff)
		}
	}
}

func kindRank(o Observation) int {
	switch {
	case o.Pod != nil:
		return 0
	case o.Claim != nil:
		return 1
	case o.Node != nil:
		return 2
	default:
		return 3
	}
}
