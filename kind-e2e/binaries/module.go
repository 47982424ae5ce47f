// SPDX-License-Identifier: Apache-2.0

package binaries

import (
	"fmt"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
)

// stagingPlaceholder is the version at which Kubernetes requires its staging
// modules, which its own go.mod then replaces by folders.
const stagingPlaceholder = "v0.0.0"

// buildModule turns the go.mod of the released module target into one of a
// module that is outside of it and builds its programs: another module path, no
// replacements, the staging modules at their released versions, a requirement
// on target itself, and the versions in pins.
func buildModule(goMod []byte, target module.Version, pins []module.Version) ([]byte, error) {
	f, err := modfile.Parse("go.mod", goMod, nil)
	if err != nil {
		return nil, fmt.Errorf("parsing the go.mod of %s: %w", target, err)
	}
	if f.Module == nil || f.Module.Mod.Path != target.Path {
		return nil, fmt.Errorf("the go.mod is not that of %s", target.Path)
	}
	if err := f.AddModuleStmt("build.local/" + target.Path); err != nil {
		return nil, fmt.Errorf("naming the build module of %s: %w", target, err)
	}
	staging, err := stagingVersion(target)
	if err != nil {
		return nil, err
	}
	wanted := []module.Version{target}
	for _, r := range f.Require {
		if r.Mod.Version != stagingPlaceholder {
			continue
		}
		if staging == "" {
			return nil, fmt.Errorf("%s requires %s, which is not a release", target, r.Mod)
		}
		wanted = append(wanted, module.Version{Path: r.Mod.Path, Version: staging})
	}
	for _, r := range append(wanted, pins...) {
		if err := f.AddRequire(r.Path, r.Version); err != nil {
			return nil, fmt.Errorf("requiring %s: %w", r, err)
		}
	}
	// A copy, because DropReplace edits the slice that it would run over.
	for _, r := range append([]*modfile.Replace(nil), f.Replace...) {
		if err := f.DropReplace(r.Old.Path, r.Old.Version); err != nil {
			return nil, fmt.Errorf("dropping the replacement of %s: %w", r.Old, err)
		}
	}
	f.Cleanup()
	out, err := f.Format()
	if err != nil {
		return nil, fmt.Errorf("formatting the build module of %s: %w", target, err)
	}
	return out, nil
}

// stagingVersion returns v0.37.2 for Kubernetes v1.37.2, and "" for other
// modules, which have no staging modules.
func stagingVersion(target module.Version) (string, error) {
	if target.Path != kubernetesModule {
		return "", nil
	}
	rest, ok := strings.CutPrefix(target.Version, "v1.")
	if !ok {
		return "", fmt.Errorf("no staging version is known for %s", target)
	}
	return "v0." + rest, nil
}
