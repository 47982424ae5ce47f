// SPDX-License-Identifier: Apache-2.0

package simtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/tools/txtar"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

// scenario is one file of testdata.
type scenario struct {
	w     *world
	files map[string]string
	mark  time.Time
}

// TestScenarios plays every file of testdata; testdata/README.md describes them. They do not run in parallel: the
// scheduler's metrics belong to the process.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := readArchive(file)
			if err != nil {
				t.Fatal(err)
			}
			commands, err := parse(archive["script"])
			if err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) { play(t, archive, commands) })
		})
	}
}

// readArchive is the sections of a file by name, with those of common.yaml.
func readArchive(file string) (map[string]string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return readScript(string(text))
}

func readScript(text string) (map[string]string, error) {
	archive := txtar.Parse([]byte(text))
	common, err := os.ReadFile("testdata/common.yaml")
	if err != nil {
		return nil, err
	}
	out := map[string]string{"common": string(common)}
	for _, f := range archive.Files {
		if _, twice := out[f.Name]; twice && f.Name != "common" {
			return nil, fmt.Errorf("section %s is there twice", f.Name)
		}
		out[f.Name] = string(f.Data)
	}
	return out, nil
}

func play(t *testing.T, files map[string]string, commands []command) *world {
	flushes := flushed(t)
	s := &scenario{w: newWorld(t, files["config"]), files: files, mark: time.Now()}
	if err := s.apply("common"); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	for _, c := range commands {
		if err := s.run(c); err != nil {
			t.Errorf("at %s, %s: %v", time.Since(s.w.began), c, err)
			s.w.show()
			return s.w
		}
	}
	time.Sleep(time.Second)
	for _, problem := range s.w.invariants() {
		t.Error(problem)
	}
	if n := flushed(t) - flushes; n != 0 {
		t.Errorf("%v pods were scheduled only after a flush of the queue", n)
	}
	if t.Failed() {
		s.w.show()
	}
	return s.w
}

// flushed is the scheduler's own count of pods that no event woke.
func flushed(t *testing.T) float64 {
	metrics.Register()
	n, err := testutil.GetCounterMetricValue(metrics.PodScheduledAfterFlush)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// lookEvery is how often within and always look at least, and at most as 1/400 of their time.
const lookEvery = 50 * time.Millisecond

func (s *scenario) run(c command) error {
	if c.mode == "" {
		s.mark = time.Now()
		err := s.order(c)
		synctest.Wait()
		return err
	}
	synctest.Wait()
	until := time.Now().Add(c.span)
	for {
		err := s.holds(c)
		switch {
		case c.mode == "expect", c.mode == "always" && err != nil, c.mode == "within" && err == nil:
			return err
		case !time.Now().Before(until):
			return err
		}
		time.Sleep(max(lookEvery, c.span/400))
		synctest.Wait()
	}
}

// elapsed is the virtual time since the last order.
func (s *scenario) elapsed(want string) error {
	limit, err := time.ParseDuration(strings.TrimLeft(want, "<>="))
	if err != nil {
		return err
	}
	have := time.Since(s.mark)
	if strings.HasPrefix(want, "<=") && have <= limit || strings.HasPrefix(want, ">=") && have >= limit {
		return nil
	}
	return fmt.Errorf("%s have passed since the last order, want %s", have, want)
}

// invariants hold at the end of every scenario.
func (w *world) invariants() []string {
	w.mu.Lock()
	problems := append([]string{}, w.violations...)
	w.mu.Unlock()
	claims, tagged := map[string]string{}, map[string]bool{}
	for _, c := range w.list(nodeClaims) {
		status, _ := c.Object["status"].(map[string]any)
		id, _ := status["providerID"].(string)
		claims[id] = c.GetName()
		tagged[c.GetName()] = c.GetAnnotations()["karpenter.k8s.aws/tagged"] == "true"
	}
	owners := map[string]string{}
	for _, i := range w.live() {
		claim, ok := claims["aws:///"+i.Zone+"/"+i.ID]
		if !ok {
			problems = append(problems, fmt.Sprintf("machine %s (%s, launched %s) belongs to no NodeClaim", i.ID, i.InstanceType, i.LaunchedAt.Sub(w.began)))
			continue
		}
		if name := i.Tags["karpenter.sh/nodeclaim"]; owners[claim] != "" || name != claim && (name != "" || tagged[claim]) {
			problems = append(problems, fmt.Sprintf("machine %s of NodeClaim %s is tagged %q, and has %q", i.ID, claim, name, owners[claim]))
		}
		if name := i.Tags["Name"]; tagged[claim] && name != i.NodeName {
			problems = append(problems, fmt.Sprintf("machine %s of NodeClaim %s is called %q, its Node %q", i.ID, claim, name, i.NodeName))
		}
		owners[claim] = i.ID
	}
	for _, p := range w.pods("") {
		if p.Spec.SchedulerName == "jit-scheduler" && p.Spec.NodeName == "" && w.lost(&p) {
			problems = append(problems, fmt.Sprintf("pod %s is lost: not bound, not parked, and nothing says why", p.Name))
		}
	}
	for _, c := range w.aws.Calls() {
		if c.Code == "IdempotentParameterMismatch" {
			problems = append(problems, fmt.Sprintf("CreateFleet %s is not the request that its token was used for", c.Params["ClientToken"]))
		}
	}
	return problems
}

// lost is true for a pod that waits and nobody knows for what.
func (w *world) lost(p *v1.Pod) bool {
	if w.Adapter.Parked(p.UID) != nil || len(p.Spec.SchedulingGates) > 0 {
		return false
	}
	list, err := w.api().EventsV1().Events("default").List(w.ctx, metav1.ListOptions{})
	if err != nil {
		return true
	}
	for _, e := range list.Items {
		if e.Regarding.UID == p.UID && e.Type == v1.EventTypeWarning {
			return false
		}
	}
	return true
}

// show prints the world for those who look for a fault.
func (w *world) show() {
	for _, c := range w.list(nodeClaims) {
		w.T.Logf("NodeClaim %s: deleted %v, %v", c.GetName(), c.GetDeletionTimestamp(), c.Object["status"])
	}
	for _, i := range w.aws.Instances() {
		w.T.Logf("machine %s: %s in %s, %s, $%.4f/h, %s, node %q %s", i.ID, i.InstanceType, i.Zone, i.CapacityType, i.PriceUSDPerHour, i.State, i.NodeName, i.BootError)
	}
	nodes, err := w.api().CoreV1().Nodes().List(w.ctx, metav1.ListOptions{})
	if err == nil {
		for _, n := range nodes.Items {
			w.T.Logf("Node %s: unschedulable %v, taints %v, annotations %v, allocatable %v", n.Name, n.Spec.Unschedulable, n.Spec.Taints, n.Annotations, n.Status.Allocatable.Cpu())
		}
	}
	for i, p := range w.pods("") {
		if i < 40 {
			w.T.Logf("pod %s: on %q, nominated %q, parked %v", p.Name, p.Spec.NodeName, p.Status.NominatedNodeName, w.Adapter.Parked(p.UID) != nil)
		}
	}
	list, err := w.api().EventsV1().Events("").List(w.ctx, metav1.ListOptions{})
	if err == nil {
		for i, e := range list.Items {
			if i < 60 {
				w.T.Logf("event of %s: %s: %s", e.Regarding.Name, e.Reason, e.Note)
			}
		}
	}
	for _, c := range w.aws.Calls() {
		if !strings.HasPrefix(c.Action, "Describe") && !strings.HasPrefix(c.Action, "Get") {
			w.T.Logf("%s: %s dry run %v, status %d %s", c.Time.Sub(w.began), c.Action, c.DryRun, c.Status, c.Code)
		}
	}
}
