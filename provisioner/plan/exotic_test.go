// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
)

// B58: bare metal is the last choice whatever it costs; so is what has accelerators that nobody asked for.
func TestB58ExoticLast(t *testing.T) {
	t.Parallel()
	size := func(it *cloudprovider.InstanceType, name string) *cloudprovider.InstanceType {
		it.Labels["karpenter.k8s.aws/instance-size"] = name
		return it
	}
	gpu := func(it *cloudprovider.InstanceType) *cloudprovider.InstanceType {
		it.Capacity["nvidia.com/gpu"], it.Allocatable["nvidia.com/gpu"] = quantity("1"), quantity("1")
		return it
	}
	five := func() []*cloudprovider.InstanceType {
		var types []*cloudprovider.InstanceType
		for i := 1; i <= 5; i++ {
			types = append(types, size(priced(fmt.Sprintf("t%d", i), 4, float64(i)), "xlarge"))
		}
		size(types[3], "metal-48xl")
		return types
	}
	withGPU, allGPU, onlyMetal := five(), five(), five()[3:4]
	gpu(withGPU[0])
	for _, it := range allGPU {
		gpu(it)
	}
	cases := map[string]struct {
		types []*cloudprovider.InstanceType
		pod   *v1.Pod
		want  []string
	}{
		"metal is the fourth":            {five(), pod("a", asks("cpu=1")), []string{"t1", "t2", "t3", "t5", "t4"}},
		"neighbour: a GPU is cheapest":   {withGPU, pod("a", asks("cpu=1")), []string{"t2", "t3", "t5", "t1", "t4"}},
		"neighbour: the pod wants a GPU": {allGPU, pod("a", asks("nvidia.com/gpu=1")), []string{"t1", "t2", "t3", "t5", "t4"}},
		"neighbour: nothing but metal":   {onlyMetal, pod("a", asks("cpu=1")), []string{"t4"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sc := scenario{pools: []Pool{poolP(c.types)}, batches: []batch{{pods: one(c.pod), wantNodes: 1, wantOK: func(t *testing.T, r Result) {
				t.Helper()
				var got []string
				for _, o := range r.Opened[0].Options {
					if n := o.InstanceType.Name; len(got) == 0 || got[len(got)-1] != n {
						got = append(got, n)
					}
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("options (-want +got):\n%s", diff)
				}
			}}}}
			sc.run(t)
		})
	}
}
