// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

const (
	// KWOKAnnotation and its value hand the node's pods to KWOK, which plays the container runtime.
	KWOKAnnotation = "kwok.x-k8s.io/node"
	kwokValue      = "fake"

	leaseNamespace       = "kube-node-lease"
	leaseDurationSeconds = 40
	callTimeout          = 10 * time.Second
)

// ErrNameTaken means that a Node of this name belongs to another machine, which shared the address
// earlier. A kubelet keeps trying.
var ErrNameTaken = errors.New("the Node object of this name belongs to another machine")

// Machine is one booting instance. All fields are given at launch and do not change.
type Machine struct {
	InstanceID     string
	InstanceType   string
	Arch           string // amd64 or arm64
	Region         string
	Zone           string
	ZoneID         string
	PrivateDNSName string
	PrivateIP      string
	KubeletVersion string
	OSImage        string
	Labels         map[string]string // of the user data
	Taints         []corev1.Taint    // of the user data
	Capacity       corev1.ResourceList
	Allocatable    corev1.ResourceList
	// OtherProviderID, if set, is what a misconfigured cloud provider calls the machine.
	OtherProviderID string
}

// ProviderID is the node's spec.providerID.
func (m *Machine) ProviderID() string {
	if m.OtherProviderID != "" {
		return m.OtherProviderID
	}
	return "aws:///" + m.Zone + "/" + m.InstanceID
}

// Node is the object as the kubelet registers it: not ready, with the taints of its configuration
// and the one that admission adds to nodes that are not ready.
func (m *Machine) Node(now time.Time) *corev1.Node {
	labels := maps.Clone(m.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, map[string]string{
		corev1.LabelHostname:           m.PrivateDNSName,
		corev1.LabelArchStable:         m.Arch,
		corev1.LabelOSStable:           string(corev1.Linux),
		corev1.LabelInstanceTypeStable: m.InstanceType,
		corev1.LabelTopologyZone:       m.Zone,
		corev1.LabelTopologyRegion:     m.Region,
		"topology.k8s.aws/zone-id":     m.ZoneID,
	})
	taints := append([]corev1.Taint{}, m.Taints...)
	taints = append(taints, corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule})
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        m.PrivateDNSName,
			Labels:      labels,
			Annotations: map[string]string{KWOKAnnotation: kwokValue, "node.alpha.kubernetes.io/ttl": "0"},
		},
		Spec: corev1.NodeSpec{ProviderID: m.ProviderID(), Taints: taints},
		Status: corev1.NodeStatus{
			Capacity:    m.Capacity,
			Allocatable: m.Allocatable,
			Conditions:  conditions(now, false),
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: m.PrivateIP},
				{Type: corev1.NodeHostName, Address: m.PrivateDNSName},
				{Type: corev1.NodeInternalDNS, Address: m.PrivateDNSName},
			},
			NodeInfo: corev1.NodeSystemInfo{
				MachineID:               m.InstanceID,
				SystemUUID:              m.InstanceID,
				BootID:                  m.InstanceID,
				KernelVersion:           "6.12.0",
				OSImage:                 m.OSImage,
				ContainerRuntimeVersion: "containerd://2.1.0",
				KubeletVersion:          m.KubeletVersion,
				OperatingSystem:         string(corev1.Linux),
				Architecture:            m.Arch,
			},
		},
	}
}

// Join registers the Node. It succeeds when this machine has registered before, and returns
// ErrNameTaken when another one holds the name.
func (m *Machine) Join(ctx context.Context, client kubernetes.Interface) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := client.CoreV1().Nodes().Create(ctx, m.Node(time.Now()), metav1.CreateOptions{})
	if err == nil {
		return nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("registering node %s: %w", m.PrivateDNSName, err)
	}
	existing, err := client.CoreV1().Nodes().Get(ctx, m.PrivateDNSName, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading node %s: %w", m.PrivateDNSName, err)
	}
	if existing.Spec.ProviderID != m.ProviderID() {
		return fmt.Errorf("registering node %s: %w", m.PrivateDNSName, ErrNameTaken)
	}
	return nil
}

// Ready reports the node's conditions as ready. Taints are left to the cluster's controllers.
func (m *Machine) Ready(ctx context.Context, client kubernetes.Interface) error {
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": conditions(time.Now(), true)}})
	if err != nil {
		return fmt.Errorf("encoding the status of node %s: %w", m.PrivateDNSName, err)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	nodes := client.CoreV1().Nodes()
	if _, err := nodes.Patch(ctx, m.PrivateDNSName, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		return fmt.Errorf("reporting node %s ready: %w", m.PrivateDNSName, err)
	}
	return nil
}

// RenewLease says that the kubelet lives. It creates the Lease when there is none.
func (m *Machine) RenewLease(ctx context.Context, client kubernetes.Interface) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	leases := client.CoordinationV1().Leases(leaseNamespace)
	now, seconds := metav1.NewMicroTime(time.Now()), int32(leaseDurationSeconds)
	spec := coordinationv1.LeaseSpec{HolderIdentity: &m.PrivateDNSName, LeaseDurationSeconds: &seconds, RenewTime: &now}
	lease, err := leases.Get(ctx, m.PrivateDNSName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: m.PrivateDNSName, Namespace: leaseNamespace}, Spec: spec}
		if _, err := leases.Create(ctx, lease, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating the lease of node %s: %w", m.PrivateDNSName, err)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the lease of node %s: %w", m.PrivateDNSName, err)
	}
	lease.Spec = spec
	if _, err := leases.Update(ctx, lease, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("renewing the lease of node %s: %w", m.PrivateDNSName, err)
	}
	return nil
}

func conditions(now time.Time, ready bool) []corev1.NodeCondition {
	at := metav1.NewTime(now)
	condition := func(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason, message string) corev1.NodeCondition {
		return corev1.NodeCondition{Type: kind, Status: status, Reason: reason, Message: message, LastHeartbeatTime: at, LastTransitionTime: at}
	}
	readiness := condition(corev1.NodeReady, corev1.ConditionFalse, "KubeletNotReady", "container runtime network not ready")
	if ready {
		readiness = condition(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady", "kubelet is posting ready status")
	}
	return []corev1.NodeCondition{
		condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
		condition(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
		condition(corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
		readiness,
	}
}
