// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
)

func TestParseExtended(t *testing.T) {
	t.Parallel()
	cases := map[string]int{ // how many names; -1: refused
		"vendor.example/fuse=1": 1, "vendor.example/fuse=1, vendor.example/lens=4": 2,
		"": -1, "fuse=1": -1, "cpu=1": -1, "vendor.example/fuse": -1, "vendor.example/fuse=0": -1, "vendor.example/fuse=-1": -1,
		"vendor.example/fuse=1.5": -1, "vendor.example/fuse=99999999999": -1, "kubernetes.io/x=1": -1, "x.kubernetes.io/x=1": -1,
		"vendor.example/fuse=1,": -1, "vendor.example/a b=1": -1,
	}
	for text, want := range cases {
		got, err := parseExtended(text)
		if (err != nil) != (want < 0) || err == nil && len(got) != want {
			t.Errorf("%q: %v, %v, want %d names", text, got, err, want)
		}
	}
}

func TestExtendLeavesTheTypeAlone(t *testing.T) {
	t.Parallel()
	base := &cloudprovider.InstanceType{Capacity: v1.ResourceList{}, Allocatable: v1.ResourceList{}}
	one := *resource.NewQuantity(1, resource.DecimalSI)
	got := extend(base, v1.ResourceList{"vendor.example/fuse": one})
	if len(base.Allocatable) != 0 || len(base.Capacity) != 0 || !got.Allocatable["vendor.example/fuse"].Equal(one) {
		t.Errorf("%v became %v", base, got)
	}
}
