// SPDX-License-Identifier: Apache-2.0

package nodeprovisioning_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/jit-scheduler/jit-scheduler/plugins/nodeprovisioning"
)

func TestDecodeArgs(t *testing.T) {
	t.Parallel()
	unknown := func(raw string) runtime.Object { return &runtime.Unknown{Raw: []byte(raw)} }
	for name, tt := range map[string]struct {
		obj     runtime.Object
		want    nodeprovisioning.NodeProvisioningArgs
		wantErr string
	}{
		"nothing": {},
		"all": {
			obj:  unknown(`{launchWait: 2s, clusterName: demo, region: us-east-1, endpoint: "http://127.0.0.1:1"}`),
			want: nodeprovisioning.NodeProvisioningArgs{LaunchWait: metav1.Duration{Duration: 2 * time.Second}, ClusterName: "demo", Region: "us-east-1", Endpoint: "http://127.0.0.1:1"},
		},
		"unknown field":   {obj: unknown(`{launchWayt: 2s}`), wantErr: `args.launchWayt: Forbidden: unknown field "launchWayt"`},
		"case matters":    {obj: unknown(`{launchwait: 2s}`), wantErr: `args.launchwait: Forbidden: unknown field "launchwait"`},
		"too long":        {obj: unknown(`{launchWait: 11s}`), wantErr: `args.launchWait: Invalid value: "11s": must be between 0s and 10s`},
		"negative":        {obj: unknown(`{launchWait: -1s}`), wantErr: `args.launchWait: Invalid value: "-1s": must be between 0s and 10s`},
		"bad endpoint":    {obj: unknown(`{endpoint: localhost}`), wantErr: `args.endpoint: Invalid value: "localhost": must be an absolute URL`},
		"other kind":      {obj: unknown(`{kind: CoschedulingArgs}`), wantErr: `args.kind: Unsupported value: "CoschedulingArgs": supported values: "NodeProvisioningArgs"`},
		"not ours at all": {obj: &metav1.Status{}, wantErr: `args: want NodeProvisioningArgs, got *v1.Status`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := nodeprovisioning.DecodeArgs(tt.obj, field.NewPath("args"))
			if tt.wantErr != "" {
				if err == nil || err.Error() != tt.wantErr {
					t.Fatalf("error = %v, want %s", err, tt.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("args (-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzDecodeArgs: no input panics, and what is accepted is within bounds.
func FuzzDecodeArgs(f *testing.F) {
	f.Add(`{launchWait: 2s}`)
	f.Add(`launchWait: 1e9`)
	f.Add(`[]`)
	f.Add("a: *a")
	f.Fuzz(func(t *testing.T, raw string) {
		args, err := nodeprovisioning.DecodeArgs(&runtime.Unknown{Raw: []byte(raw)}, field.NewPath("args"))
		if err == nil && (args.LaunchWait.Duration < 0 || args.LaunchWait.Duration > nodeprovisioning.MaxLaunchWait) {
			t.Errorf("%q gave launchWait %s", raw, args.LaunchWait.Duration)
		}
	})
}
