// SPDX-License-Identifier: Apache-2.0

package binaries

import (
	"fmt"
	"strings"

	"golang.org/x/mod/module"
)

// Names of the programs.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kubectl           = "kubectl"
	Kwok              = "kwok"
	Karpenter         = "karpenter"
)

// ControlPlane is what kind-e2e/cluster needs. Karpenter is built on demand.
func ControlPlane() []string {
	return []string{Etcd, Kwok, APIServer, ControllerManager, Scheduler, Kubectl}
}

// program says how one binary is built.
type program struct {
	name string
	// pkg is the import path of package main.
	pkg string
	// version names the folder that the binary goes to.
	version string
	// graph is the module whose go.mod is copied; pins are added to it.
	graph module.Version
	pins  []module.Version
	// vars are set by the linker: import path.name=value.
	vars []string
}

func programs(v Versions) (map[string]program, error) {
	kube := module.Version{Path: kubernetesModule, Version: v.Kubernetes}
	kubeVars, err := kubernetesVars(v.Kubernetes)
	if err != nil {
		return nil, err
	}
	all := map[string]program{}
	add := func(p program) { all[p.name] = p }
	for _, name := range []string{APIServer, ControllerManager, Scheduler, Kubectl} {
		add(program{
			name: name, pkg: kubernetesModule + "/cmd/" + name, version: v.Kubernetes, graph: kube, vars: kubeVars,
		})
	}
	graph := module.Version{Path: kubernetesModule, Version: v.Graph}
	add(program{
		name: Etcd, pkg: etcdModule, version: v.Etcd, graph: graph,
		pins: []module.Version{{Path: etcdModule, Version: v.Etcd}},
	})
	add(program{
		name: Kwok, pkg: kwokModule + "/cmd/kwok", version: v.Kwok, graph: graph,
		pins: []module.Version{{Path: kwokModule, Version: v.Kwok}},
	})
	add(program{
		name: Karpenter, pkg: karpenterModule + "/cmd/controller", version: v.Karpenter,
		graph: module.Version{Path: karpenterModule, Version: v.Karpenter},
		pins:  []module.Version{{Path: karpenterCore, Version: v.KarpenterCore}},
		vars:  []string{karpenterCore + "/pkg/operator.Version=" + strings.TrimPrefix(v.Karpenter, "v")},
	})
	return all, nil
}

// kubernetesVars makes the programs report the version they were built from;
// unset, they report v0.0.0-master, and an empty major and minor, which version
// checks in clients reject.
func kubernetesVars(version string) ([]string, error) {
	parts := strings.Split(strings.TrimPrefix(version, "v"), ".")
	if len(parts) != 3 || !strings.HasPrefix(version, "v") {
		return nil, fmt.Errorf("%q is not a Kubernetes release (want v1.37.2)", version)
	}
	var vars []string
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		vars = append(vars,
			pkg+".gitVersion="+version, pkg+".gitMajor="+parts[0], pkg+".gitMinor="+parts[1],
			pkg+".gitTreeState=clean", pkg+".gitCommit="+version)
	}
	return vars, nil
}

// ldflags returns the value of go build's -ldflags.
func (p program) ldflags() string {
	flags := []string{"-s", "-w"}
	for _, v := range p.vars {
		flags = append(flags, "-X", v)
	}
	return strings.Join(flags, " ")
}

// stamp names everything that decides what the binary is, except the Go
// toolchain: an older toolchain's build is as good.
func (p program) stamp() string {
	var b strings.Builder
	fmt.Fprintf(&b, "package %s\ngraph %s\n", p.pkg, p.graph)
	for _, pin := range p.pins {
		fmt.Fprintf(&b, "pin %s\n", pin)
	}
	fmt.Fprintf(&b, "flags -trimpath -ldflags %q\n", p.ldflags())
	return b.String()
}
