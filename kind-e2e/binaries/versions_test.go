// SPDX-License-Identifier: Apache-2.0

package binaries

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const goodGoMod = `module github.com/jit-scheduler/jit-scheduler

require (
	k8s.io/kubernetes v1.37.2
	github.com/aws/karpenter-provider-aws v1.14.1
	sigs.k8s.io/karpenter v1.14.1
)
`

func TestVersionsOf(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		goMod, minor   string
		wantKubernetes string
		wantErr        string
	}{
		"go.mod's":                   {goMod: goodGoMod, wantKubernetes: "v1.37.2"},
		"go.mod's, named":            {goMod: goodGoMod, minor: "1.37", wantKubernetes: "v1.37.2"},
		"the oldest that we support": {goMod: goodGoMod, minor: "1.34", wantKubernetes: "v1.34.4"},
		"written with a v":           {goMod: goodGoMod, minor: "v1.34", wantKubernetes: "v1.34.4"},
		"one that is not pinned":     {goMod: goodGoMod, minor: "1.35", wantErr: "K8S=1.35"},
		"a prefix is not a minor":    {goMod: goodGoMod, minor: "1.3", wantErr: "K8S=1.3"},
		"go.mod without Kubernetes":  {goMod: "module m\n", wantErr: "does not require"},
		"go.mod that does not parse": {goMod: "module", wantErr: "parsing"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			if err := os.WriteFile(filepath.Join(root, "go.mod"), []byte(tc.goMod), 0o644); err != nil {
				t.Fatal(err)
			}
			got, err := VersionsOf(root, tc.minor)
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Fatalf("got %+v, error %v; want an error with %q", got, err, tc.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := testVersions
			want.Kubernetes = tc.wantKubernetes
			if got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

func TestRepoRoot(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	nested := filepath.Join(root, "a", "b")
	if err := os.MkdirAll(nested, 0o755); err != nil {
		t.Fatal(err)
	}
	if got, err := RepoRoot(nested); err == nil {
		t.Errorf("found %s where there is no repository", got)
	}
	for path, content := range map[string]string{
		filepath.Join(root, "go.mod"):      goodGoMod,
		filepath.Join(root, "a", "go.mod"): "module tools\n", // of a nested module
	} {
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := RepoRoot(nested); err != nil || got != root {
		t.Errorf("got %q, error %v; want %q", got, err, root)
	}
}
