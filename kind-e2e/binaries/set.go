// SPDX-License-Identifier: Apache-2.0

package binaries

import (
	"fmt"
	"os"
	"path/filepath"
)

// Set is the binaries of one set of versions. It may be incomplete.
type Set struct {
	// Versions are what the binaries were built from.
	Versions Versions
	bin      string
}

// Find returns the set of versions v in the repository root, without looking at
// the disk.
func Find(root string, v Versions) Set {
	return Set{Versions: v, bin: filepath.Join(root, ".bin")}
}

// Path returns the path of a binary, or an error that says how to build it if
// it is missing or was built from something else.
func (s Set) Path(name string) (string, error) {
	all, err := programs(s.Versions)
	if err != nil {
		return "", err
	}
	p, ok := all[name]
	if !ok {
		return "", fmt.Errorf("no program is called %q", name)
	}
	if !s.built(p) {
		return "", fmt.Errorf("%s %s is not built: run make binaries (go run ./kind-e2e/cmd/binaries %s)",
			name, p.version, name)
	}
	return s.path(p), nil
}

// Missing returns those of names that are not built, in the order given.
func (s Set) Missing(names ...string) []string {
	var missing []string
	for _, name := range names {
		if _, err := s.Path(name); err != nil {
			missing = append(missing, name)
		}
	}
	return missing
}

func (s Set) path(p program) string      { return filepath.Join(s.bin, p.version, p.name) }
func (s Set) stampPath(p program) string { return s.path(p) + ".stamp" }

// built reports whether the binary is there and its stamp, written after it, is
// the one that a build would write now.
func (s Set) built(p program) bool {
	stamp, err := os.ReadFile(s.stampPath(p))
	if err != nil || string(stamp) != p.stamp() {
		return false
	}
	info, err := os.Stat(s.path(p))
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}
