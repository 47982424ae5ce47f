// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"runtime/debug"
	"strings"
	"testing"
)

func TestVersionText(t *testing.T) {
	t.Parallel()
	scheduler := &debug.Module{Path: "k8s.io/kubernetes", Version: "v1.37.2"}
	revision := debug.BuildSetting{Key: "vcs.revision", Value: "0123456789abcdef"}
	for name, tt := range map[string]struct {
		info debug.BuildInfo
		want string
	}{
		"a release": {
			debug.BuildInfo{
				GoVersion: "go1.26.0", Main: debug.Module{Version: "v0.3.0"}, Deps: []*debug.Module{{Path: "k8s.io/api"}, scheduler},
				Settings: []debug.BuildSetting{revision, {Key: "vcs.modified", Value: "false"}},
			},
			"jit-scheduler v0.3.0 (revision 0123456789ab, kube-scheduler v1.37.2, go1.26.0)",
		},
		"a changed tree": {
			debug.BuildInfo{Main: debug.Module{Version: "(devel)"}, Deps: []*debug.Module{scheduler}, Settings: []debug.BuildSetting{revision, {Key: "vcs.modified", Value: "true"}}},
			"jit-scheduler (devel) (revision 0123456789ab, modified, kube-scheduler v1.37.2)",
		},
		"without a repository": {debug.BuildInfo{GoVersion: "go1.26.0"}, "jit-scheduler (devel) (go1.26.0)"},
	} {
		if got := versionText(&tt.info); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func TestVersionIsPrinted(t *testing.T) {
	t.Setenv("CLUSTER_NAME", "")
	cmd := newCommand()
	t.Cleanup(func() { // the flag is verflag's, one for the process
		f := cmd.Flags().Lookup("version")
		if err := f.Value.Set("false"); err != nil {
			t.Error(err)
		}
		f.Changed = false
	})
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetArgs([]string{"--version"})
	if err := cmd.Execute(); err != nil || !strings.HasPrefix(out.String(), "jit-scheduler ") {
		t.Errorf("printed %q, %v", out.String(), err)
	}
}
