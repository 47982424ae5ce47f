// SPDX-License-Identifier: Apache-2.0

package provisioner_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// typeName is how AWS calls instance types.
var typeName = regexp.MustCompile(`\b[a-z]+-?[0-9][a-z0-9-]*\.(?:nano|micro|small|medium|large|[0-9]*xlarge|metal)\b|"[a-z]{1,3}[0-9]{1,2}[a-z]{0,3}"`)

// allowedWords look like names of instance families.
var allowedWords = map[string]bool{`"v1"`: true, `"ec2"`: true, `"arm64"`: true, `"amd64"`: true}

// TestNoTypeNames: what holds for an instance type follows from what EC2 says of it, or from a table; never from code
// that knows its name.
func TestNoTypeNames(t *testing.T) {
	t.Parallel()
	for _, p := range listPackages(t) {
		if !matchesAny(p.ImportPath, product) || matchesAny(p.ImportPath, simtest) {
			continue
		}
		for _, file := range p.GoFiles {
			text, err := os.ReadFile(filepath.Join(p.Dir, file))
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range typeName.FindAllString(string(text), -1) {
				if !allowedWords[name] {
					t.Errorf("%s/%s speaks of %s", p.short(), file, name)
				}
			}
		}
	}
}

func TestNoTypeNamesCanFail(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		`// like m5.large`: true, `"u-6tb1.metal"`: true, `case "a1":`: true, `"m7i-flex.8xlarge"`: true, `size.allocatable`: false, `"al2023"`: false, `x.large`: false,
	} {
		if got := typeName.MatchString(text); got != want {
			t.Errorf("%s: found is %v, want %v", text, got, want)
		}
	}
}
