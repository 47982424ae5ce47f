// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/binaries"
	"github.com/jit-scheduler/jit-scheduler/kind-e2e/cluster"
	"github.com/jit-scheduler/jit-scheduler/kind-e2e/judge"
)

// Env is a cluster, a fake AWS endpoint and a judge that watches both.
type Env struct {
	Root    string
	Cluster *cluster.Cluster
	Kube    kubernetes.Interface
	Dynamic dynamic.Interface
	Fake    *Fake
	Judge   *judge.Judge
	Out     io.Writer

	built   map[string]string // commands compiled by this Env, by name
	started []*cluster.Process
	stop    context.CancelFunc
}

// Options of an Env.
type Options struct {
	// Name of the cluster; its state is in .bin/run/<name>.
	Name string
	// SchedulerName is whose pods are judged.
	SchedulerName string
	// Rules of the judge; SetRules of Env.Judge changes them later.
	Rules judge.Rules
	// Boot is how long a machine takes from launch to Ready; 2 s if 0.
	Boot time.Duration
	Out  io.Writer
}

// defaultBoot is how long machines take if nothing else is asked for.
const defaultBoot = 2 * time.Second

// Start brings up the world and returns once the judge watches it.
func Start(ctx context.Context, o Options) (*Env, error) {
	began := time.Now()
	e, ctx, err := startCluster(ctx, o.Name, o.Out)
	if err != nil {
		return nil, err
	}
	if err := e.watch(ctx, "fakeaws", o); err != nil {
		return nil, errors.Join(err, e.Stop())
	}
	e.Say("cluster, AWS endpoint and judge are up (%s); logs in %s", time.Since(began).Round(100*time.Millisecond), e.Cluster.Dir)
	return e, nil
}

// startCluster starts a cluster without machines. The context that it returns ends with Stop.
func startCluster(ctx context.Context, name string, out io.Writer) (*Env, context.Context, error) {
	root, err := binaries.RepoRoot(".")
	if err != nil {
		return nil, nil, err
	}
	mode := cluster.ModeLocal
	if os.Getenv("CLUSTER") == "kind" {
		mode = cluster.ModeKind
	}
	ctx, stop := context.WithCancel(ctx)
	e := &Env{Root: root, Out: out, stop: stop, built: map[string]string{}}
	if e.Cluster, err = cluster.Start(ctx, cluster.Options{Name: name, Root: root, Mode: mode}); err != nil {
		stop()
		return nil, nil, err
	}
	if e.Kube, e.Dynamic, err = judge.ClientsFor(e.Cluster.Config()); err != nil {
		return nil, nil, errors.Join(err, e.Stop())
	}
	return e, ctx, nil
}

// watch gives the cluster an AWS account of its own, whose process is called fakeName, and a judge of both.
func (e *Env) watch(ctx context.Context, fakeName string, o Options) error {
	if o.Boot == 0 {
		o.Boot = defaultBoot
	}
	var err error
	if e.Fake, err = e.startFake(ctx, fakeName, o.Boot); err != nil {
		return err
	}
	e.Judge, err = judge.Start(ctx, judge.Config{
		Kube: e.Kube, Dynamic: e.Dynamic, FakeURL: e.Fake.URL, SchedulerName: o.SchedulerName, Rules: o.Rules,
	})
	return err
}

// Say prints a line of progress.
func (e *Env) Say(format string, args ...any) { fmt.Fprintf(e.Out, format+"\n", args...) }

// Stop ends everything that Start and StartProduct started.
func (e *Env) Stop() error {
	errs := []error{e.unwatch()}
	if e.Cluster != nil {
		errs = append(errs, e.Cluster.Stop())
	}
	e.stop()
	return errors.Join(errs...)
}

// unwatch ends the programs that were started, the AWS endpoint and the judge; the cluster stays.
func (e *Env) unwatch() error {
	var errs []error
	for _, p := range slices.Backward(e.started) {
		errs = append(errs, p.Stop(5*time.Second))
	}
	e.started = nil
	if e.Judge != nil {
		e.Judge.Stop()
	}
	e.Judge, e.Fake = nil, nil
	return errors.Join(errs...)
}

// build compiles a command of this repository into .bin, once.
func (e *Env) build(ctx context.Context, name, pkg string) (string, error) {
	if path := e.built[name]; path != "" {
		return path, nil
	}
	out := filepath.Join(e.Root, ".bin", name)
	cmd := exec.CommandContext(ctx, "go", "build", "-ldflags=-s -w", "-o", out, pkg)
	cmd.Dir = e.Root
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", pkg, err, text)
	}
	e.built[name] = out
	return out, nil
}

func (e *Env) run(spec cluster.ProcessSpec) (*cluster.Process, error) {
	spec.Dir = e.Cluster.Dir
	p, err := cluster.StartProcess(spec)
	if err != nil {
		return nil, err
	}
	e.started = append(e.started, p)
	return p, nil
}

// Apply applies a manifest file of the repository, or a kustomization folder.
func (e *Env) Apply(ctx context.Context, path string) error {
	flag := "-f"
	if info, err := os.Stat(filepath.Join(e.Root, path)); err == nil && info.IsDir() {
		flag = "-k"
	}
	return e.kubectl(ctx, "apply", "--server-side", flag, filepath.Join(e.Root, path))
}

func (e *Env) kubectl(ctx context.Context, args ...string) error {
	if out, err := e.Cluster.Kubectl(ctx, args...); err != nil {
		return fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}
