// SPDX-License-Identifier: Apache-2.0

package binaries

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var testVersions = Versions{
	Kubernetes: "v1.37.2", Graph: "v1.37.2", Etcd: "v3.7.0", Kwok: "v0.8.0",
	Karpenter: "v1.14.1", KarpenterCore: "v1.14.1",
}

// pretend puts a binary and the stamp of a build from versions v into root.
func pretend(t *testing.T, root string, v Versions, name string) {
	t.Helper()
	all, err := programs(v)
	if err != nil {
		t.Fatal(err)
	}
	set, p := Find(root, v), all[name]
	if err := os.MkdirAll(filepath.Dir(set.path(p)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(set.path(p), []byte("#!/bin/true\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(set.stampPath(p), []byte(p.stamp()), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestSetPath(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		name    string
		prepare func(t *testing.T, root, binary string)
		wantErr string
	}{
		"built":              {name: Kubectl},
		"an unknown program": {name: "kubelet", wantErr: "no program is called"},
		"never built":        {name: Etcd, wantErr: "run make binaries"},
		"without a stamp, as an interrupted build leaves it": {
			name:    Kubectl,
			prepare: func(t *testing.T, _, binary string) { remove(t, binary+".stamp") },
			wantErr: "kubectl v1.37.2 is not built",
		},
		"without the binary": {
			name:    Kubectl,
			prepare: func(t *testing.T, _, binary string) { remove(t, binary) },
			wantErr: "is not built",
		},
		"not executable": {
			name: Kubectl,
			prepare: func(t *testing.T, _, binary string) {
				if err := os.Chmod(binary, 0o644); err != nil {
					t.Fatal(err)
				}
			},
			wantErr: "is not built",
		},
		"built with other flags": {
			name: Kubectl,
			prepare: func(t *testing.T, _, binary string) {
				if err := os.WriteFile(binary+".stamp", []byte("flags -race\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			},
			wantErr: "is not built",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			pretend(t, root, testVersions, Kubectl)
			binary := filepath.Join(root, ".bin", "v1.37.2", "kubectl")
			if tc.prepare != nil {
				tc.prepare(t, root, binary)
			}
			got, err := Find(root, testVersions).Path(tc.name)
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Fatalf("got %q, error %v; want an error with %q", got, err, tc.wantErr)
				}
				return
			}
			if err != nil || got != binary {
				t.Errorf("got %q, error %v; want %q", got, err, binary)
			}
		})
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// A stamp must change with everything that changes the binary, and with nothing
// else: a needless change costs minutes.
func TestStamp(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		change      func(v *Versions)
		wantRebuilt []string
	}{
		"nothing": {change: func(*Versions) {}},
		"the cluster's Kubernetes, as K8S=1.34 does": {
			change:      func(v *Versions) { v.Kubernetes = "v1.34.4" },
			wantRebuilt: []string{APIServer, ControllerManager, Scheduler, Kubectl},
		},
		"go.mod's Kubernetes": {
			change:      func(v *Versions) { v.Kubernetes, v.Graph = "v1.37.3", "v1.37.3" },
			wantRebuilt: []string{Etcd, Kwok, APIServer, ControllerManager, Scheduler, Kubectl},
		},
		"KWOK":      {change: func(v *Versions) { v.Kwok = "v0.9.0" }, wantRebuilt: []string{Kwok}},
		"etcd":      {change: func(v *Versions) { v.Etcd = "v3.7.1" }, wantRebuilt: []string{Etcd}},
		"Karpenter": {change: func(v *Versions) { v.Karpenter = "v1.15.0" }, wantRebuilt: []string{Karpenter}},
		"Karpenter's core": {
			change: func(v *Versions) { v.KarpenterCore = "v1.15.0" }, wantRebuilt: []string{Karpenter},
		},
	}
	names := append(ControlPlane(), Karpenter)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			for _, program := range names {
				pretend(t, root, testVersions, program)
			}
			changed := testVersions
			tc.change(&changed)
			if diff := cmp.Diff(tc.wantRebuilt, Find(root, changed).Missing(names...)); diff != "" {
				t.Errorf("to be built again (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBuildSkipsWhatIsBuilt(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	pretend(t, root, testVersions, Kubectl)
	var out bytes.Buffer
	if _, err := Build(t.Context(), root, testVersions, []string{Kubectl}, &out); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.Contains(got, "all 1 binaries are built") {
		t.Errorf("printed %q", got)
	}
	if _, err := os.Stat(filepath.Join(root, ".bin", "build")); err == nil {
		t.Error("a build module was written although nothing had to be built")
	}
	if _, err := Build(t.Context(), root, testVersions, []string{"kubelet"}, &out); err == nil {
		t.Error("an unknown program was accepted")
	}
}

func TestBuildWaitsForAnother(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	pretend(t, root, testVersions, Kubectl)
	unlock, err := lock(t.Context(), filepath.Join(root, ".bin"), func() { t.Error("waited for nobody") })
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	var out bytes.Buffer
	_, err = Build(ctx, root, testVersions, []string{Kubectl}, &out)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(out.String(), "waiting for another build") {
		t.Errorf("while another builds: error %v, printed %q", err, out.String())
	}
	unlock()
	if _, err := Build(t.Context(), root, testVersions, []string{Kubectl}, &out); err != nil {
		t.Errorf("after the other: %v", err)
	}
}

func TestKubernetesVars(t *testing.T) {
	t.Parallel()
	vars, err := kubernetesVars("v1.34.4")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"k8s.io/component-base/version.gitVersion=v1.34.4",
		"k8s.io/component-base/version.gitMajor=1",
		"k8s.io/component-base/version.gitMinor=34",
	} {
		if !slices.Contains(vars, want) {
			t.Errorf("%s is not set; got %v", want, vars)
		}
	}
	for _, bad := range []string{"", "1.34.4", "v1.34", "v1"} {
		if _, err := kubernetesVars(bad); err == nil {
			t.Errorf("version %q was accepted", bad)
		}
	}
}
