// SPDX-License-Identifier: Apache-2.0

package provisioner_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

const modulePath = "github.com/jit-scheduler/jit-scheduler"

// importRule says what some packages of this module must not import.
type importRule struct {
	// packages and except are patterns, see matchesAny; relative ones are of this module.
	packages, except []string
	// deny and allow are patterns of import paths; what matches allow is not denied.
	deny, allow []string
	// indirect also looks at what the imports import; otherwise, only at the packages' own import lines.
	indirect bool
	// tests also looks at the import lines of the packages' tests.
	tests bool
	why   string
}

var (
	product = []string{"./cmd/...", "./plugins/...", "./provisioner/..."}
	pure    = []string{"./provisioner/plan/...", "./provisioner/lifecycle/...", "./provisioner/scheduling/...", "./provisioner/allocatable/..."}
	// simtest runs the whole product against the fake AWS; only tests have anything to import from it.
	simtest = []string{"./provisioner/simtest/..."}
)

// importRules is who may import whom. A change here is a change of the architecture.
var importRules = map[string]importRule{
	"product knows nothing of its tests": {
		packages: product, except: simtest,
		deny: []string{"./kind-e2e/...", "./provisioner/simtest/..."}, indirect: true,
		why: "what ships must not depend on fakes, clusters or checkers",
	},
	"only the API types of Karpenter": {
		packages: product,
		deny:     []string{"sigs.k8s.io/karpenter/...", "github.com/aws/karpenter-provider-aws/..."},
		allow:    []string{"sigs.k8s.io/karpenter/pkg/apis/...", "github.com/aws/karpenter-provider-aws/pkg/apis/..."},
		tests:    true,
		// Not indirect: the API types of the AWS provider import what we must not.
		why: "we share Karpenter's API, not its behaviour",
	},
	"only cmd and the adapter import Kubernetes itself": {
		packages: []string{"./plugins/...", "./provisioner/..."}, except: append([]string{"./plugins/kubescheduler/..."}, simtest...),
		deny: []string{"k8s.io/kubernetes/..."}, indirect: true,
		why: "its packages change with every minor; one place has to follow",
	},
	"pure packages have no effects": {
		packages: pure,
		deny: []string{
			"context", "math/rand/...", "sync/...", "log/...", "os/...", "net/...", "crypto/rand",
			"k8s.io/klog/...", "github.com/go-logr/...", "k8s.io/client-go/...", "sigs.k8s.io/controller-runtime/...",
			"github.com/aws/aws-sdk-go-v2/...",
		},
		why: "clock, randomness, clients, loggers and goroutines are the shell's; the core is a function",
	},
	"pure packages import nothing above them": {
		packages: pure,
		deny:     []string{"./..."},
		allow:    append([]string{"./provisioner/cloudprovider"}, pure...),
		indirect: true,
		why:      "the core is used by the shell, never the other way round",
	},
	"planner and state machine do not decide for each other": {
		packages: []string{"./provisioner/scheduling/..."},
		deny:     []string{"./provisioner/plan/...", "./provisioner/lifecycle/..."}, indirect: true,
		why: "requirements and resources lie below both",
	},
	"the planner does not know the ledger": {
		packages: []string{"./provisioner/plan/..."},
		deny:     []string{"./provisioner/lifecycle/..."}, indirect: true,
		why: "a plan depends on its snapshot alone",
	},
	"the cloud interface knows no cloud": {
		packages: []string{"./provisioner/cloudprovider"},
		deny:     []string{"github.com/aws/aws-sdk-go-v2/...", "./provisioner/cloudprovider/..."},
		allow:    []string{"./provisioner/cloudprovider"},
		why:      "AWS is one adapter among others that may come",
	},
	"the AWS adapter decides nothing": {
		packages: []string{"./provisioner/cloudprovider/ec2/..."},
		deny:     []string{"./provisioner", "./provisioner/plan/...", "./provisioner/lifecycle/...", "./plugins/..."}, indirect: true,
		why: "an adapter is told what to launch",
	},
	"the provisioner does not know who calls it": {
		packages: []string{"./provisioner"},
		deny: []string{
			"./plugins/...", "./cmd/...", "./provisioner/cloudprovider/ec2/...", "k8s.io/kube-scheduler/framework/...",
		},
		indirect: true,
		why:      "it reaches the scheduler and the cloud through interfaces",
	},
	"the plugin translates only": {
		packages: []string{"./plugins/nodeprovisioning/..."},
		deny: []string{
			"./provisioner/cloudprovider/ec2/...", "./provisioner/plan/...", "./provisioner/lifecycle/...", "./plugins/kubescheduler/...",
			"github.com/aws/aws-sdk-go-v2/...",
		},
		why: "a few lines per extension point, all decisions behind the Provisioner interface",
	},
	"the kubectl plugin only looks": {
		packages: []string{"./cmd/kubectl-jit/..."},
		deny:     []string{"./provisioner", "./provisioner/lifecycle/...", "./plugins/nodeprovisioning/..."}, indirect: true,
		why: "it shares what computes, not what acts",
	},
	"the fake AWS knows only the AWS API": {
		packages: []string{"./kind-e2e/fakeaws/..."},
		deny:     product, indirect: true, tests: true,
		why: "a fake that shares code with the product shares its faults",
	},
	"the judge believes nobody": {
		packages: []string{"./kind-e2e/judge/..."},
		deny:     append([]string{"./kind-e2e/fakeaws/...", "./kind-e2e/cluster/..."}, product...), indirect: true, tests: true,
		why: "it decides about the product from what everybody can watch",
	},
	"the cluster does not know the product": {
		packages: []string{"./kind-e2e/cluster/...", "./kind-e2e/binaries/..."},
		deny:     append([]string{"./kind-e2e/fakeaws/..."}, product...), indirect: true, tests: true,
		why: "Karpenter runs on it as well",
	},
	"end-to-end cases run the product as a program": {
		packages: []string{"./kind-e2e/e2e/...", "./kind-e2e/cmd/..."},
		deny:     product, indirect: true, tests: true,
		why: "they see what users see",
	},
	"tests use the standard library": {
		packages: []string{"./..."},
		deny:     []string{"github.com/stretchr/testify/...", "github.com/onsi/..."}, tests: true,
		why: "one way to write a test",
	},
}

// TestImports holds every package of the module to importRules.
func TestImports(t *testing.T) {
	t.Parallel()
	packages := listPackages(t)
	for name, rule := range importRules {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			for _, pattern := range slices.Concat(rule.packages, rule.except) {
				if !slices.ContainsFunc(packages, func(p goPackage) bool { return matchesAny(p.ImportPath, []string{pattern}) }) {
					t.Errorf("no package matches %s: the rule checks nothing", pattern)
				}
			}
			for _, violation := range rule.violations(packages) {
				t.Errorf("%s: %s", violation, rule.why)
			}
		})
	}
}

// TestImportRulesCanFail shows that a violation of either kind is seen.
func TestImportRulesCanFail(t *testing.T) {
	t.Parallel()
	packages := []goPackage{{
		ImportPath: modulePath + "/provisioner/plan", Imports: []string{"context"},
		TestImports: []string{"github.com/onsi/gomega"}, Deps: []string{"context", modulePath + "/provisioner"},
	}}
	tests := map[string]struct {
		rule string
		want []string
	}{
		"direct":  {rule: "pure packages have no effects", want: []string{"provisioner/plan imports context"}},
		"depends": {rule: "pure packages import nothing above them", want: []string{"provisioner/plan depends on " + modulePath + "/provisioner"}},
		"test":    {rule: "tests use the standard library", want: []string{"provisioner/plan imports github.com/onsi/gomega"}},
		"clean":   {rule: "the planner does not know the ledger"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := importRules[tt.rule].violations(packages); !slices.Equal(got, tt.want) {
				t.Errorf("violations() = %q, want %q", got, tt.want)
			}
		})
	}
}

func (r importRule) violations(packages []goPackage) []string {
	var found []string
	for _, p := range packages {
		if !matchesAny(p.ImportPath, r.packages) || matchesAny(p.ImportPath, r.except) {
			continue
		}
		direct := p.Imports
		if r.tests {
			direct = slices.Concat(p.Imports, p.TestImports, p.XTestImports)
		}
		for _, imported := range distinct(direct) {
			if r.denies(imported, p) {
				found = append(found, fmt.Sprintf("%s imports %s", p.short(), imported))
			}
		}
		if !r.indirect {
			continue
		}
		for _, dep := range distinct(p.Deps) {
			if r.denies(dep, p) && !slices.Contains(direct, dep) {
				found = append(found, fmt.Sprintf("%s depends on %s", p.short(), dep))
			}
		}
	}
	return found
}

// denies says whether p must not import the path. An external test imports its own package.
func (r importRule) denies(imported string, p goPackage) bool {
	return imported != p.ImportPath && matchesAny(imported, r.deny) && !matchesAny(imported, r.allow)
}

func distinct(paths []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(paths)))
}

// matchesAny says whether an import path matches a pattern: an import path, or one followed by /... for it and all
// below it; ./ stands for this module.
func matchesAny(importPath string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		if relative, ok := strings.CutPrefix(pattern, "./"); ok {
			pattern = path.Join(modulePath, relative)
		}
		prefix, tree := strings.CutSuffix(pattern, "/...")
		return importPath == prefix || (tree && strings.HasPrefix(importPath, prefix+"/"))
	})
}

// goPackage is what go list says about a package; Deps are its imports, theirs, and so on, without tests.
type goPackage struct {
	ImportPath, Dir                          string
	GoFiles                                  []string
	Imports, TestImports, XTestImports, Deps []string
}

func (p goPackage) short() string { return strings.TrimPrefix(p.ImportPath, modulePath+"/") }

// listPackages lists all packages of the module, those that do not compile included: compilers complain better.
func listPackages(t *testing.T) []goPackage {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-e",
		"-json=ImportPath,Dir,GoFiles,Imports,TestImports,XTestImports,Deps", modulePath+"/...")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	var packages []goPackage
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatalf("reading what go list says: %v", err)
		}
		packages = append(packages, p)
	}
}
