// SPDX-License-Identifier: Apache-2.0

package simtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"github.com/awslabs/operatorpkg/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider/ec2"
)

const (
	fleetSize = 5000
	// maxDescribes (without the catalogue) and maxReady are promised for a restart with that many machines.
	maxDescribes = 20
	maxReady     = 10 * time.Second
)

// TestRestartOnAFleet starts the product in a cluster with 5,000 machines that another process has launched: the first
// launch comes soon, and AWS is not asked about machines one by one, then or later.
func TestRestartOnAFleet(t *testing.T) {
	files, err := readArchive("testdata/inflate.txtar")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		s := &scenario{w: newWorld(t, files["config"]), files: files, mark: time.Now()}
		if err := s.apply("common"); err != nil {
			t.Fatal(err)
		}
		w := s.w
		for _, order := range []string{
			`patch nodepool default {"spec":{"limits":null,"disruption":{"consolidateAfter":"Never"}}}`,
			`settings {"joinDelay":"1000h"}`, // their Nodes are made by hand
			`advance 5s`,
		} {
			play1(t, s, order)
		}
		w.Stop()
		for _, machine := range w.launchFleet(t) {
			w.adopt(t, machine)
		}
		time.Sleep(10 * time.Minute) // they are old enough to be leaks
		began := time.Now()
		w.start(t)
		play1(t, s, "pods a 1 cpu=20")
		var ready time.Duration
		for ready == 0 && time.Since(began) < time.Minute {
			time.Sleep(10 * time.Millisecond)
			if calls := w.callsSince(began); calls["CreateFleet"] > 0 {
				ready = time.Since(began)
			}
		}
		first := w.callsSince(began)
		t.Logf("restart on %d machines: first launch after %s (virtual), %d describe calls of which %d read the catalogue: %s",
			fleetSize, ready, first.describes(nil), first.describes(nil)-first.describes(catalogueReads), first)
		if ready == 0 || ready > maxReady {
			t.Errorf("the first launch came after %s, want at most %s", ready, maxReady)
		}
		time.Sleep(40*time.Second - ready) // the first sweep
		later := w.callsSince(began)
		t.Logf("after the first sweep: %s", later)
		if n := later.describes(catalogueReads); n > maxDescribes {
			t.Errorf("%d describe calls, want at most %d", n, maxDescribes)
		}
		for _, c := range w.aws.Calls() {
			if c.AccessKey == "AKsim" && !c.Time.Before(began) && (c.Params["InstanceId.1"] != "" || c.Params["ResourceId.1"] != "") {
				t.Errorf("%s about single machines: %v", c.Action, c.Params)
			}
		}
		if n := len(w.live()); n != fleetSize+1 { // no machine of another process was taken for a leak

			t.Errorf("%d machines, want %d and the new one", n, fleetSize)
		}
	})
}

// play1 carries out one order of a script.
func play1(t *testing.T, s *scenario, line string) {
	t.Helper()
	commands, err := parse(line)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range commands {
		if err := s.run(c); err != nil {
			t.Fatalf("%s: %v", c, err)
		}
	}
}

// callCounts are calls of the product by action.
type callCounts map[string]int

func (c callCounts) String() string {
	var parts []string
	for _, action := range slices.Sorted(maps.Keys(c)) {
		parts = append(parts, fmt.Sprintf("%d %s", c[action], action))
	}
	return strings.Join(parts, ", ")
}

// catalogueReads depend on what EC2 sells, not on what runs: 100 types or 1,000 offerings or prices a page.
var catalogueReads = []string{"DescribeInstanceTypes", "DescribeInstanceTypeOfferings", "DescribeSpotPriceHistory"}

func (c callCounts) describes(without []string) int {
	n := 0
	for action, count := range c {
		if strings.HasPrefix(action, "Describe") && !slices.Contains(without, action) {
			n += count
		}
	}
	return n
}

func (w *world) callsSince(began time.Time) callCounts {
	counts := callCounts{}
	for _, c := range w.aws.Calls() {
		if c.AccessKey == "AKsim" && !c.Time.Before(began) && !c.DryRun {
			counts[c.Action]++
		}
	}
	return counts
}

// launchFleet launches machines as another process does.
func (w *world) launchFleet(t *testing.T) []cloudprovider.Instance {
	t.Helper()
	cloud := ec2.New(ec2.Options{ClusterName: "demo", AWS: w.aws.AWSConfig("AKsetup")})
	class := &awsv1.EC2NodeClass{}
	object, err := w.object("nodeclass", "default")
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, class)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cloud.Resolve(w.ctx, class); err != nil {
		t.Fatal(err)
	}
	types, err := cloud.InstanceTypes(class)
	if err != nil {
		t.Fatal(err)
	}
	large := types[slices.IndexFunc(types, func(it *cloudprovider.InstanceType) bool { return it.Name == "m5.large" })]
	zones := w.aws.Zones()
	var machines []cloudprovider.Instance
	for i := 0; len(machines) < fleetSize; i++ {
		req := cloudprovider.LaunchRequest{
			Token: fmt.Sprintf("fleet-%d", i), Group: fmt.Sprintf("fleet-%d", i), Count: 500, Claims: make([]string, 500), NodePool: "default", NodeClass: class,
			Taints: []v1.Taint{karpv1.UnregisteredNoExecuteTaint},
		}
		for _, offering := range large.Offerings {
			if offering.Zone == zones[i%len(zones)] && offering.CapacityType == karpv1.CapacityTypeOnDemand {
				req.Options = append(req.Options, cloudprovider.LaunchOption{InstanceType: large, Offering: offering})
			}
		}
		result, err := cloud.Launch(w.ctx, req)
		if err != nil {
			t.Fatal(err)
		}
		machines = append(machines, result.Instances...)
	}
	return machines
}

// adopt makes the NodeClaim and the ready Node of a machine.
func (w *world) adopt(t *testing.T, machine cloudprovider.Instance) {
	t.Helper()
	name := "default-" + strings.TrimPrefix(machine.ID, "i-")
	labels := map[string]string{
		karpv1.NodePoolLabelKey: "default", v1.LabelInstanceTypeStable: machine.InstanceType, v1.LabelTopologyZone: machine.Zone,
		karpv1.CapacityTypeLabelKey: machine.CapacityType, v1.LabelArchStable: "amd64", v1.LabelOSStable: "linux",
	}
	now := metav1.Now()
	claim := &karpv1.NodeClaim{
		TypeMeta: metav1.TypeMeta{APIVersion: "karpenter.sh/v1", Kind: "NodeClaim"},
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: maps.Clone(labels), Finalizers: []string{karpv1.TerminationFinalizer},
			Annotations: map[string]string{awsv1.AnnotationInstanceTagged: "true", awsv1.AnnotationClusterNameTaggedCompatability: "true"},
		},
		Spec:   karpv1.NodeClaimSpec{NodeClassRef: &karpv1.NodeClassReference{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "default"}},
		Status: karpv1.NodeClaimStatus{ProviderID: machine.ProviderID, NodeName: name, ImageID: machine.ImageID},
	}
	for _, kind := range []string{karpv1.ConditionTypeLaunched, karpv1.ConditionTypeRegistered, karpv1.ConditionTypeInitialized, status.ConditionReady} {
		claim.Status.Conditions = append(claim.Status.Conditions, status.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: kind, LastTransitionTime: now})
	}
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(claim)
	if err == nil {
		_, err = w.custom(nodeClaims).Create(w.ctx, &unstructured.Unstructured{Object: raw}, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	labels[v1.LabelHostname], labels[karpv1.NodeRegisteredLabelKey], labels[karpv1.NodeInitializedLabelKey] = name, "true", "true"
	size := v1.ResourceList{v1.ResourceCPU: resource.MustParse("1930m"), v1.ResourcePods: resource.MustParse("29")}
	err = w.createCore(&v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Finalizers: []string{karpv1.TerminationFinalizer}},
		Spec:       v1.NodeSpec{ProviderID: machine.ProviderID},
		Status:     v1.NodeStatus{Capacity: size, Allocatable: size, Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}},
	})
	if err != nil {
		t.Fatal(err)
	}
}
