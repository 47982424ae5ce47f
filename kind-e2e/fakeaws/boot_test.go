// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
)

var onlyM5Large = []types.InstanceType{types.InstanceTypeM5Large}

func TestMachineBootsAndGoes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cluster := fake.NewClientset()
		var asked ClusterInfo
		s, client := start(t, Options{NodeClient: func(_ context.Context, info ClusterInfo, _ string) (kubernetes.Interface, error) {
			asked = info
			return cluster, nil
		}})
		settings := DefaultSettings()
		settings.ReadyDelay, settings.NodeLifecycle = seconds(3), true
		s.SetSettings(settings)
		makeTemplate(t, s, client, "template")
		out, err := client.CreateFleet(t.Context(), fleetInput(s, "template", 1, onDemand, onlyM5Large, "us-east-1b"))
		if err != nil {
			t.Fatal(err)
		}
		ids := launchedIDs(out)
		if len(ids) != 1 || len(out.Errors) != 0 {
			t.Fatalf("got instances %v and errors %v", ids, out.Errors)
		}

		assertState(t, s, client, ids[0], types.InstanceStateNamePending)
		time.Sleep(1500 * time.Millisecond)
		assertState(t, s, client, ids[0], types.InstanceStateNameRunning)
		if nodes := listNodes(t, cluster); len(nodes) != 0 {
			t.Fatalf("joined too early: %v", nodes)
		}
		time.Sleep(time.Second)
		nodes := listNodes(t, cluster)
		if len(nodes) != 1 {
			t.Fatalf("after 2.5 s: got %d nodes, want 1", len(nodes))
		}
		assertRegistered(t, &nodes[0], ids[0])
		if diff := cmp.Diff(ClusterInfo{Name: "demo", Endpoint: "https://api.demo", CA: []byte("ca-bundle")}, asked); diff != "" {
			t.Errorf("cluster in the user data (-want +got):\n%s", diff)
		}
		if ready(&nodes[0]) {
			t.Error("the node is ready before its time")
		}
		time.Sleep(3 * time.Second)
		node := listNodes(t, cluster)[0]
		if !ready(&node) {
			t.Errorf("after 5.5 s: conditions %v, want Ready", node.Status.Conditions)
		}
		want := []corev1.Taint{{Key: "karpenter.sh/unregistered", Effect: corev1.TaintEffectNoExecute}}
		if diff := cmp.Diff(want, node.Spec.Taints); diff != "" {
			t.Errorf("taints of the ready node (-want +got):\n%s", diff)
		}

		if _, err := client.TerminateInstances(t.Context(), &ec2.TerminateInstancesInput{InstanceIds: ids}); err != nil {
			t.Fatal(err)
		}
		assertState(t, s, client, ids[0], types.InstanceStateNameShuttingDown)
		time.Sleep(1500 * time.Millisecond)
		assertState(t, s, client, ids[0], types.InstanceStateNameTerminated)
		if len(listNodes(t, cluster)) != 1 {
			t.Error("the node went before the cloud controller could notice")
		}
		time.Sleep(2 * time.Second)
		if nodes := listNodes(t, cluster); len(nodes) != 0 {
			t.Errorf("the cloud controller left %d nodes", len(nodes))
		}
		time.Sleep(time.Hour)
		_, err = client.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{InstanceIds: ids})
		if got := errorCode(err); got != "InvalidInstanceID.NotFound" {
			t.Errorf("an hour after termination: got %q", got)
		}
		if all := s.Instances(); len(all) != 1 || all[0].State != "terminated" {
			t.Errorf("the control list must keep terminated instances, got %v", all)
		}
	})
}

func assertState(t *testing.T, s *Server, client *ec2.Client, id string, want types.InstanceStateName) {
	t.Helper()
	out, err := client.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{InstanceIds: []string{id}})
	if err != nil {
		t.Fatal(err)
	}
	if got := out.Reservations[0].Instances[0].State.Name; got != want {
		t.Errorf("state after %v: got %s, want %s", time.Since(s.Instances()[0].LaunchedAt), got, want)
	}
}

func listNodes(t *testing.T, cluster kubernetes.Interface) []corev1.Node {
	t.Helper()
	list, err := cluster.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func ready(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

func assertRegistered(t *testing.T, node *corev1.Node, id string) {
	t.Helper()
	if node.Name != "ip-10-0-16-4.ec2.internal" || node.Spec.ProviderID != "aws:///us-east-1b/"+id {
		t.Errorf("got node %s with provider id %s", node.Name, node.Spec.ProviderID)
	}
	wantLabels := map[string]string{
		"kubernetes.io/hostname": node.Name, "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", "node.kubernetes.io/instance-type": "m5.large",
		"topology.kubernetes.io/zone": "us-east-1b", "topology.kubernetes.io/region": "us-east-1", "topology.k8s.aws/zone-id": "use1-az2",
		"karpenter.sh/nodepool": "default",
	}
	if diff := cmp.Diff(wantLabels, node.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	wantTaints := []corev1.Taint{
		{Key: "karpenter.sh/unregistered", Effect: corev1.TaintEffectNoExecute}, {Key: "node.kubernetes.io/not-ready", Effect: corev1.TaintEffectNoSchedule},
	}
	if diff := cmp.Diff(wantTaints, node.Spec.Taints); diff != "" {
		t.Errorf("taints (-want +got):\n%s", diff)
	}
	if node.Annotations["kwok.x-k8s.io/node"] != "fake" {
		t.Errorf("KWOK does not manage the node: annotations %v", node.Annotations)
	}
	for name, want := range map[corev1.ResourceName]string{"cpu": "1930m", "memory": "6903Mi", "pods": "58", "ephemeral-storage": "17Gi"} {
		if got := node.Status.Allocatable[name]; got.Cmp(resource.MustParse(want)) != 0 {
			t.Errorf("allocatable %s: got %s, want %s", name, got.String(), want)
		}
	}
}

func TestMachineFaults(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		rule      Rule
		wantNodes int
		wantReady bool
	}{
		"healthy":       {wantNodes: 1, wantReady: true},
		"never joins":   {rule: Rule{Service: "node", Action: "Join", DropRequest: true}},
		"never ready":   {rule: Rule{Service: "node", Action: "Ready", Code: "Broken"}, wantNodes: 1},
		"joins late":    {rule: Rule{Service: "node", Action: "Join", Delay: seconds(100)}},
		"another type":  {rule: Rule{Service: "node", Action: "Join", InstanceType: "c5.large", DropRequest: true}, wantNodes: 1, wantReady: true},
		"ready is late": {rule: Rule{Service: "node", Action: "Ready", Delay: seconds(5)}, wantNodes: 1, wantReady: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				cluster := fake.NewClientset()
				s, client := start(t, Options{NodeClient: joins(cluster)})
				if tc.rule.Service != "" {
					s.SetFault(tc.rule)
				}
				makeTemplate(t, s, client, "template")
				if _, err := client.CreateFleet(t.Context(), fleetInput(s, "template", 1, onDemand, onlyM5Large)); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				nodes := listNodes(t, cluster)
				if len(nodes) != tc.wantNodes || (len(nodes) == 1 && ready(&nodes[0]) != tc.wantReady) {
					t.Errorf("got %d nodes, want %d, ready %v", len(nodes), tc.wantNodes, tc.wantReady)
				}
			})
		})
	}
}

func TestMachineRetriesAndKeepsItsName(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		squatter := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "ip-10-0-0-4.ec2.internal"}, Spec: corev1.NodeSpec{ProviderID: "aws:///us-east-1a/i-other"}}
		cluster := fake.NewClientset(squatter)
		attempts := 0
		s, client := start(t, Options{NodeClient: func(context.Context, ClusterInfo, string) (kubernetes.Interface, error) {
			if attempts++; attempts < 3 {
				return nil, apierrors.NewServiceUnavailable("starting")
			}
			return cluster, nil
		}})
		settings := DefaultSettings()
		settings.LeasePeriod = seconds(10)
		s.SetSettings(settings)
		makeTemplate(t, s, client, "template")
		if _, err := client.CreateFleet(t.Context(), fleetInput(s, "template", 1, onDemand, onlyM5Large, "us-east-1a")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if node := listNodes(t, cluster)[0]; node.Spec.ProviderID != squatter.Spec.ProviderID {
			t.Fatalf("the machine took over another machine's node: %s", node.Spec.ProviderID)
		}
		if err := cluster.CoreV1().Nodes().Delete(t.Context(), squatter.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(15 * time.Second)
		if node := listNodes(t, cluster)[0]; !ready(&node) {
			t.Errorf("conditions %v, want Ready", node.Status.Conditions)
		}
		lease, err := cluster.CoordinationV1().Leases("kube-node-lease").Get(t.Context(), squatter.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if age := time.Since(lease.Spec.RenewTime.Time); age > 10*time.Second {
			t.Errorf("the lease was renewed %v ago", age)
		}
	})
}

func TestMachineThatCannotBoot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, client := start(t, Options{NodeClient: joins(fake.NewClientset())})
		name := "empty"
		if _, err := client.CreateLaunchTemplate(t.Context(), &ec2.CreateLaunchTemplateInput{
			LaunchTemplateName: &name, LaunchTemplateData: &types.RequestLaunchTemplateData{ImageId: new(s.imageNamed(t, amd64Image))},
		}); err != nil {
			t.Fatal(err)
		}
		if _, err := client.CreateFleet(t.Context(), fleetInput(s, name, 1, onDemand, onlyM5Large)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		in := s.Instances()[0]
		if in.State != "running" || in.NodeName != "" || in.BootError == "" {
			t.Errorf("got state %s, node %q, boot error %q", in.State, in.NodeName, in.BootError)
		}
	})
}
