// SPDX-License-Identifier: Apache-2.0

package binaries

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
)

const (
	// repoModule is how RepoRoot recognizes this repository.
	repoModule = "github.com/jit-scheduler/jit-scheduler"

	kubernetesModule   = "k8s.io/kubernetes"
	etcdModule         = "go.etcd.io/etcd/server/v3"
	kwokModule         = "sigs.k8s.io/kwok"
	karpenterModule    = "github.com/aws/karpenter-provider-aws"
	karpenterCore      = "sigs.k8s.io/karpenter"
	kwokVersion        = "v0.8.0"
	etcdVersion        = "v3.7.0" // the one Kubernetes 1.37 is built and tested with
	oldestServerMinor  = "1.34"
	oldestServerPinned = "v1.34.4"
)

// Versions are module versions ("v1.37.2").
type Versions struct {
	// Kubernetes is the cluster's; Graph is go.mod's, whose dependencies etcd and
	// KWOK are built with, so that most of them are compiled only once.
	Kubernetes, Graph string
	Etcd              string
	Kwok              string
	// Karpenter is the AWS provider's; KarpenterCore the one it is built with.
	Karpenter, KarpenterCore string
}

// VersionsOf reads the versions from the go.mod in root. Minor is the value of
// the K8S environment variable: empty for go.mod's own Kubernetes, or a minor
// version with a pinned patch release ("1.34").
func VersionsOf(root, minor string) (Versions, error) {
	path := filepath.Join(root, "go.mod")
	data, err := os.ReadFile(path)
	if err != nil {
		return Versions{}, fmt.Errorf("reading the repository's go.mod: %w", err)
	}
	mod, err := modfile.ParseLax(path, data, nil)
	if err != nil {
		return Versions{}, fmt.Errorf("parsing the repository's go.mod: %w", err)
	}
	required := map[string]string{}
	for _, r := range mod.Require {
		required[r.Mod.Path] = r.Mod.Version
	}
	v := Versions{
		Kubernetes:    required[kubernetesModule],
		Graph:         required[kubernetesModule],
		Etcd:          etcdVersion,
		Kwok:          kwokVersion,
		Karpenter:     required[karpenterModule],
		KarpenterCore: required[karpenterCore],
	}
	for module, version := range map[string]string{
		kubernetesModule: v.Kubernetes, karpenterModule: v.Karpenter, karpenterCore: v.KarpenterCore,
	} {
		if version == "" {
			return Versions{}, fmt.Errorf("%s does not require %s", path, module)
		}
	}
	switch minor = strings.TrimPrefix(minor, "v"); {
	case minor == "", strings.HasPrefix(v.Kubernetes, "v"+minor+"."):
	case minor == oldestServerMinor:
		v.Kubernetes = oldestServerPinned
	default:
		return Versions{}, fmt.Errorf("no patch release is pinned for K8S=%s: use %s, or leave it out for %s",
			minor, oldestServerMinor, v.Kubernetes)
	}
	return v, nil
}

// RepoRoot returns the folder of this repository's go.mod, looking in dir and
// its parents.
func RepoRoot(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("finding the repository: %w", err)
	}
	for {
		data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && modfile.ModulePath(data) == repoModule {
			return dir, nil
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("finding the repository: %w", err)
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("not inside the repository %s", repoModule)
		}
		dir = parent
	}
}
