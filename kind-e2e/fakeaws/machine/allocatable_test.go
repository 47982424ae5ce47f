// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/fakeaws/catalogue"
	"github.com/jit-scheduler/jit-scheduler/kind-e2e/fakeaws/userdata"
)

func TestResourcesAsPublished(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/published-allocatable-sample.json")
	if err != nil {
		t.Fatal(err)
	}
	var published map[string]map[string]string
	if err := json.Unmarshal(data, &published); err != nil {
		t.Fatal(err)
	}
	if len(published) < 200 {
		t.Fatalf("only %d types in the sample", len(published))
	}
	for name, want := range published {
		it, ok := catalogue.Get(name)
		if !ok {
			t.Errorf("%s is not in the catalogue", name)
			continue
		}
		_, allocatable, err := Resources(Hardware{Type: it, DevicePlugins: true}, userdata.Config{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for key, text := range want {
			if strings.HasPrefix(key, "vpc.amazonaws.com/") {
				continue // needs a controller and interfaces that a plain AL2023 node does not have
			}
			got := allocatable[corev1.ResourceName(key)]
			if got.Cmp(resource.MustParse(text)) != 0 {
				t.Errorf("%s %s: got %s, published %s", name, key, got.String(), text)
			}
		}
	}
}

func TestResourcesFromUserData(t *testing.T) {
	t.Parallel()
	pods := func(n int64) *int64 { return &n }
	m5, _ := catalogue.Get("m5.large") // 8192 MiB, 29 pods, 615 MiB of guest overhead: 7577Mi of memory
	m5d, _ := catalogue.Get("m5d.large")
	g5, _ := catalogue.Get("g5.xlarge")
	cases := map[string]struct {
		hardware Hardware
		config   userdata.Config
		want     map[corev1.ResourceName]string // allocatable
		wantErr  bool
	}{
		"defaults": {
			hardware: Hardware{Type: m5},
			want:     map[corev1.ResourceName]string{"cpu": "1930m", "memory": "6903Mi", "pods": "29", "ephemeral-storage": "17Gi"},
		},
		"max pods leave the memory reserve alone": {
			hardware: Hardware{Type: m5}, config: userdata.Config{MaxPods: pods(110)},
			want: map[corev1.ResourceName]string{"memory": "6903Mi", "pods": "110"},
		},
		"pods per core": {
			hardware: Hardware{Type: m5}, config: userdata.Config{PodsPerCore: 4},
			want: map[corev1.ResourceName]string{"pods": "8"},
		},
		"reserves and eviction": {
			hardware: Hardware{Type: m5},
			config: userdata.Config{
				KubeReserved: map[string]string{"cpu": "100m"}, SystemReserved: map[string]string{"memory": "1Gi"},
				EvictionHard: map[string]string{"memory.available": "300Mi", "nodefs.available": "5%"},
			},
			want: map[corev1.ResourceName]string{"cpu": "1900m", "memory": "5679Mi", "ephemeral-storage": "18Gi"},
		},
		"instance store": {
			hardware: Hardware{Type: m5d}, config: userdata.Config{RAID0: true, EvictionHard: map[string]string{"nodefs.available": "100%"}},
			want: map[corev1.ResourceName]string{"ephemeral-storage": "72193611Ki"}, // 75 GB - 1Gi
		},
		"bigger root disk": {
			hardware: Hardware{Type: m5, RootDiskGiB: 100},
			want:     map[corev1.ResourceName]string{"ephemeral-storage": "89Gi"},
		},
		"less memory than computed": {
			hardware: Hardware{Type: m5, Deviation: map[corev1.ResourceName]float64{"memory": -0.5}},
			want:     map[corev1.ResourceName]string{"memory": "3534336Ki", "cpu": "1930m"},
		},
		"no device plugin": {hardware: Hardware{Type: g5}, want: map[corev1.ResourceName]string{"nvidia.com/gpu": "0"}},
		"device plugin":    {hardware: Hardware{Type: g5, DevicePlugins: true}, want: map[corev1.ResourceName]string{"nvidia.com/gpu": "1"}},
		"nonsense":         {hardware: Hardware{Type: m5}, config: userdata.Config{KubeReserved: map[string]string{"cpu": "many"}}, wantErr: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, allocatable, err := Resources(tc.hardware, tc.config)
			if (err != nil) != tc.wantErr {
				t.Fatalf("got error %v, want one: %v", err, tc.wantErr)
			}
			for key, text := range tc.want {
				got := allocatable[key]
				if got.Cmp(resource.MustParse(text)) != 0 {
					t.Errorf("%s: got %s, want %s", key, got.String(), text)
				}
			}
		})
	}
}
