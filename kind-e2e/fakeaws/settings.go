// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Settings are what can be changed while the fake runs. Durations are Go duration strings in JSON.
// Delays apply to instances and calls from then on.
type Settings struct {
	DescribeLag       metav1.Duration `json:"describeLag"`       // a new instance is unknown to Describe* and CreateTags for so long
	LaunchTemplateLag metav1.Duration `json:"launchTemplateLag"` // likewise a new launch template
	ProfileLag        metav1.Duration `json:"profileLag"`        // EC2 does not know a new instance profile for so long
	PendingDelay      metav1.Duration `json:"pendingDelay"`      // launch to running; 0 means BootDelay
	BootDelay         metav1.Duration `json:"bootDelay"`         // launch to a booted operating system
	JoinDelay         metav1.Duration `json:"joinDelay"`         // booted to a registered Node
	ReadyDelay        metav1.Duration `json:"readyDelay"`        // registered to Ready
	TerminateDelay    metav1.Duration `json:"terminateDelay"`    // shutting-down to terminated
	TerminatedFor     metav1.Duration `json:"terminatedFor"`     // how long EC2 still lists terminated instances
	WithholdFor       metav1.Duration `json:"withholdFor"`       // how long a withheld reply hangs before the reset

	CloudControllerDeletes bool            `json:"cloudControllerDeletes"` // the cloud controller deletes Nodes of terminated instances
	CloudControllerDelay   metav1.Duration `json:"cloudControllerDelay"`   // terminated to the deletion of the Node
	NodeLifecycle          bool            `json:"nodeLifecycle"`          // remove the not-ready taint on Ready; for API servers without kube-controller-manager
	LeasePeriod            metav1.Duration `json:"leasePeriod"`            // kubelet heartbeat; 0 means that KWOK does it
	DevicePlugins          bool            `json:"devicePlugins"`          // GPUs and accelerators are advertised when the Node joins

	AllocatableDeviation map[string]string   `json:"allocatableDeviation"` // resource name to share, "-0.02" is 2 % less
	PoolCapacity         map[string]int      `json:"poolCapacity"`         // "m5.large/us-east-1a/spot" to the instances it can still start
	VCPUQuota            map[string]int      `json:"vcpuQuota"`            // "on-demand", or "spot/g" for a class of types, to vCPUs; absent is unlimited
	UnofferedZones       map[string][]string `json:"unofferedZones"`       // instance type to zones that do not offer it
	HiddenTypes          []string            `json:"hiddenTypes"`          // instance types that EC2 does not have (yet)
	UnpricedTypes        []string            `json:"unpricedTypes"`        // instance types that the price list lacks
	FreeAddresses        map[string]int      `json:"freeAddresses"`        // subnet id to the addresses it can still give, if fewer than its size tells
	AddressLag           metav1.Duration     `json:"addressLag"`           // DescribeSubnets tells the free addresses of so long ago
	AddressesPerMachine  int                 `json:"addressesPerMachine"`  // addresses that the CNI takes for pods at launch
	ZonalShifts          []string            `json:"zonalShifts"`          // ids of zones that traffic is shifted away from
	EventQueue           string              `json:"eventQueue"`           // queue that gets EC2's events; it is made when it is named
	DuplicateMessages    bool                `json:"duplicateMessages"`    // every message is put into its queue twice
	ReorderMessages      bool                `json:"reorderMessages"`      // messages come last in, first out
	Throttle             bool                `json:"throttle"`             // hold calls to their token buckets
	Rates                map[string]Rate     `json:"rates"`                // buckets by action, instead of EC2's documented ones
}

// DefaultSettings boots a machine in two seconds and has no lag, limit or throttle.
func DefaultSettings() Settings {
	of := func(d time.Duration) metav1.Duration { return metav1.Duration{Duration: d} }
	return Settings{
		BootDelay:              of(time.Second),
		JoinDelay:              of(time.Second),
		TerminateDelay:         of(time.Second),
		TerminatedFor:          of(time.Hour),
		WithholdFor:            of(time.Minute),
		CloudControllerDeletes: true,
		CloudControllerDelay:   of(2 * time.Second),
		DevicePlugins:          true,
	}
}

// patched returns the settings with the JSON object laid over them. Unknown fields are an error.
func (s Settings) patched(data []byte) (Settings, error) {
	s = s.clone()
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&s); err != nil {
		return Settings{}, fmt.Errorf("reading settings: %w", err)
	}
	if _, err := s.deviation(); err != nil {
		return Settings{}, err
	}
	return s, nil
}

func (s Settings) clone() Settings {
	s.AllocatableDeviation = maps.Clone(s.AllocatableDeviation)
	s.PoolCapacity = maps.Clone(s.PoolCapacity)
	s.VCPUQuota = maps.Clone(s.VCPUQuota)
	s.UnofferedZones = maps.Clone(s.UnofferedZones)
	s.Rates, s.FreeAddresses = maps.Clone(s.Rates), maps.Clone(s.FreeAddresses)
	s.HiddenTypes, s.UnpricedTypes, s.ZonalShifts = slices.Clone(s.HiddenTypes), slices.Clone(s.UnpricedTypes), slices.Clone(s.ZonalShifts)
	return s
}

func (s Settings) deviation() (map[corev1.ResourceName]float64, error) {
	deviation, err := shares(s.AllocatableDeviation)
	if err != nil {
		return nil, fmt.Errorf("reading allocatableDeviation: %w", err)
	}
	return deviation, nil
}

// shares reads shares by resource name.
func shares(texts map[string]string) (map[corev1.ResourceName]float64, error) {
	shares := map[corev1.ResourceName]float64{}
	for name, text := range texts {
		share, err := strconv.ParseFloat(text, 64)
		if err != nil || share < -1 || share > 1 {
			return nil, fmt.Errorf("%s %q is not a share between -1 and 1", name, text)
		}
		shares[corev1.ResourceName(name)] = share
	}
	return shares, nil
}

func (s Settings) runningAfter() time.Duration {
	if s.PendingDelay.Duration > 0 {
		return s.PendingDelay.Duration
	}
	return s.BootDelay.Duration
}

// offers says whether a zone has the instance type.
func (s *Settings) offers(name, zone string) bool {
	return !slices.Contains(s.UnofferedZones[name], zone) && !slices.Contains(s.HiddenTypes, name)
}
