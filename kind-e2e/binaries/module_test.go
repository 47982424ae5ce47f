// SPDX-License-Identifier: Apache-2.0

package binaries

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
)

const kubernetesGoMod = `// This is a generated file.
module k8s.io/kubernetes

go 1.26.0

godebug default=go1.26

require (
	github.com/spf13/cobra v1.10.2
	k8s.io/api v0.0.0
	k8s.io/client-go v0.0.0
	k8s.io/klog/v2 v2.140.0
	go.etcd.io/etcd/server/v3 v3.6.0 // indirect
)

replace (
	k8s.io/api => ./staging/src/k8s.io/api
	k8s.io/client-go => ./staging/src/k8s.io/client-go
)
`

func TestBuildModule(t *testing.T) {
	t.Parallel()
	kube := module.Version{Path: kubernetesModule, Version: "v1.37.2"}
	cases := map[string]struct {
		goMod       string
		target      module.Version
		pins        []module.Version
		wantRequire map[string]string
		wantErr     string
	}{
		"staging modules get the release's version": {
			goMod: kubernetesGoMod, target: kube,
			wantRequire: map[string]string{
				"github.com/spf13/cobra":    "v1.10.2",
				"k8s.io/api":                "v0.37.2",
				"k8s.io/client-go":          "v0.37.2",
				"k8s.io/klog/v2":            "v2.140.0",
				"go.etcd.io/etcd/server/v3": "v3.6.0",
				"k8s.io/kubernetes":         "v1.37.2",
			},
		},
		"pins raise what is there and add what is not": {
			goMod: kubernetesGoMod, target: module.Version{Path: kubernetesModule, Version: "v1.34.4"},
			pins: []module.Version{
				{Path: etcdModule, Version: "v3.7.0"}, {Path: kwokModule, Version: "v0.8.0"},
			},
			wantRequire: map[string]string{
				"github.com/spf13/cobra":    "v1.10.2",
				"k8s.io/api":                "v0.34.4",
				"k8s.io/client-go":          "v0.34.4",
				"k8s.io/klog/v2":            "v2.140.0",
				"go.etcd.io/etcd/server/v3": "v3.7.0",
				"sigs.k8s.io/kwok":          "v0.8.0",
				"k8s.io/kubernetes":         "v1.34.4",
			},
		},
		"a module without staging": {
			goMod:  "module sigs.k8s.io/kwok\n\ngo 1.26.0\n\nrequire k8s.io/api v0.36.1\n\nreplace k8s.io/api => k8s.io/api v0.36.0\n",
			target: module.Version{Path: kwokModule, Version: "v0.8.0"},
			wantRequire: map[string]string{
				"k8s.io/api": "v0.36.1", "sigs.k8s.io/kwok": "v0.8.0",
			},
		},
		"a placeholder where no release is known": {
			goMod:   "module sigs.k8s.io/kwok\n\nrequire k8s.io/api v0.0.0\n",
			target:  module.Version{Path: kwokModule, Version: "v0.8.0"},
			wantErr: "not a release",
		},
		"another module's go.mod": {
			goMod: "module example.com/other\n", target: kube, wantErr: "not that of k8s.io/kubernetes",
		},
		"not a go.mod": {
			goMod: "require (", target: kube, wantErr: "parsing the go.mod",
		},
		"a version without a known staging version": {
			goMod: kubernetesGoMod, target: module.Version{Path: kubernetesModule, Version: "v2.0.0"},
			wantErr: "no staging version",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := buildModule([]byte(tc.goMod), tc.target, tc.pins)
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Fatalf("got error %v, want one with %q", err, tc.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			f, err := modfile.Parse("go.mod", out, nil)
			if err != nil {
				t.Fatalf("the result does not parse: %v\n%s", err, out)
			}
			if f.Module.Mod.Path == tc.target.Path {
				t.Errorf("the build module is still called %s", tc.target.Path)
			}
			if len(f.Replace) > 0 {
				t.Errorf("%d replacements are left", len(f.Replace))
			}
			got := map[string]string{}
			for _, r := range f.Require {
				got[r.Mod.Path] = r.Mod.Version
			}
			if diff := cmp.Diff(tc.wantRequire, got); diff != "" {
				t.Errorf("requirements (-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzBuildModule(f *testing.F) {
	f.Add(kubernetesGoMod)
	f.Add("module k8s.io/kubernetes\nreplace a.b/c => ../c\n")
	f.Fuzz(func(t *testing.T, goMod string) {
		out, err := buildModule([]byte(goMod), module.Version{Path: kubernetesModule, Version: "v1.37.2"}, nil)
		if err != nil {
			return
		}
		if _, err := modfile.Parse("go.mod", out, nil); err != nil {
			t.Errorf("the result does not parse: %v\n%s", err, out)
		}
	})
}
