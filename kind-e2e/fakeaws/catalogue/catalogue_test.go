// SPDX-License-Identifier: Apache-2.0

package catalogue

import "testing"

func TestTypes(t *testing.T) {
	t.Parallel()
	if got, want := len(Types()), 1345; got != want {
		t.Errorf("types: got %d, want %d", got, want)
	}
	for _, it := range Types() {
		if it.VCPU < 1 || it.MemoryMiB < 1 || it.OnDemandUSD <= 0 || (it.Arch != "amd64" && it.Arch != "arm64") {
			t.Errorf("%s is not a usable type: %+v", it.Name, it)
		}
		for _, zone := range []string{"us-east-1a", "us-east-1b", "us-east-1c"} {
			if spot := it.SpotUSD(zone); spot <= 0 || spot > it.OnDemandUSD {
				t.Errorf("%s in %s: spot price %v, on-demand %v", it.Name, zone, spot, it.OnDemandUSD)
			}
			if depth := it.SpotDepth(zone); depth < 0 || depth >= 1 {
				t.Errorf("%s in %s: depth %v", it.Name, zone, depth)
			}
		}
	}
}

func TestENIPods(t *testing.T) {
	t.Parallel()
	cases := map[string]int{"m5.large": 29, "m5.xlarge": 58, "t3.micro": 4, "p4d.24xlarge": 737}
	for name, wantPods := range cases {
		it, ok := Get(name)
		if !ok {
			t.Fatalf("%s is not in the catalogue", name)
		}
		if got := it.ENIPods(); got != wantPods {
			t.Errorf("%s: got %d pods, want %d", name, got, wantPods)
		}
	}
	if _, ok := Get("m5.huge"); ok {
		t.Error("a type that does not exist was found")
	}
}
