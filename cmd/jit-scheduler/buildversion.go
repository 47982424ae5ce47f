// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/component-base/version/verflag"
)

// printVersion answers --version; it says whether that was asked.
func printVersion(flags *pflag.FlagSet, print func(...any)) bool {
	f := flags.Lookup("version")
	if f == nil || !f.Changed || f.Value.String() == "false" {
		verflag.PrintAndExitIfRequested() // --version=v1.2.3 sets what the process reports
		return false
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	print(versionText(info))
	return true
}

// versionText says what was built from what: our version, or the revision where there is none, and the scheduler's.
func versionText(info *debug.BuildInfo) string {
	own := info.Main.Version
	if own == "" {
		own = "(devel)"
	}
	var built []string
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	if r := settings["vcs.revision"]; r != "" {
		built = append(built, "revision "+r[:min(12, len(r))])
	}
	if settings["vcs.modified"] == "true" {
		built = append(built, "modified")
	}
	for _, m := range info.Deps {
		if m.Path == "k8s.io/kubernetes" {
			if m.Replace != nil {
				m = m.Replace
			}
			built = append(built, "kube-scheduler "+m.Version)
		}
	}
	if info.GoVersion != "" {
		built = append(built, info.GoVersion)
	}
	return fmt.Sprintf("%s %s (%s)", name, own, strings.Join(built, ", "))
}
