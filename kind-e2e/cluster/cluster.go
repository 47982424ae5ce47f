// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/binaries"
)

// Mode says what a cluster is made of.
type Mode string

const (
	// ModeLocal runs the control plane as processes of this machine.
	ModeLocal Mode = "local"
	// ModeKind runs it in a container, through sigs.k8s.io/kind.
	ModeKind Mode = "kind"
)

// startTimeout bounds Start. A local cluster takes about 10 s on two idle cores.
const startTimeout = 3 * time.Minute

// Options of Start. The zero value is a local cluster called "default".
type Options struct {
	// Name tells clusters on one machine apart.
	Name string
	// Mode, if empty, is the CLUSTER environment variable, or ModeLocal if that is
	// empty too.
	Mode Mode
	// Root is the repository, which has the binaries; empty finds it from the
	// working directory.
	Root string
	// Dir keeps the state; empty is <Root>/.bin/run/<Name>. What an earlier
	// cluster left in it is removed.
	Dir string
	// K8S is a minor version ("1.34"); empty is the K8S environment variable,
	// and go.mod's version if that is empty too.
	K8S string
}

// Cluster is a running cluster. All methods may be called at the same time.
type Cluster struct {
	Name string
	Mode Mode
	// Dir has the logs and all other state.
	Dir string
	// Endpoint is the API server's URL, and CAPEM the CA that its certificate is
	// verified with.
	Endpoint string
	CAPEM    []byte
	// ClientCA signs client certificates that the API server believes: user is
	// the common name, groups are the organizations.
	ClientCA CertFiles
	// Kubeconfig is the path of the admin's.
	Kubeconfig string
	// AuditLog is the path of the API server's audit log, one JSON event a line.
	AuditLog string

	config   *rest.Config
	clientCA *authority
	binaries binaries.Set
	// processes in the order of their start.
	processes []*Process
	// stopKubelets ends the kubelets' part in this process and waits for its end.
	stopKubelets func()
	// stopMode ends what is not in processes.
	stopMode func() error

	stopOnce sync.Once
	stopErr  error
}

// Start starts a cluster and returns when the API server, the controllers, the
// scheduler and KWOK are ready. A component that fails is named in the error,
// with the end of its log, and nothing keeps running. The cluster does not end
// with ctx: it runs until Stop, or until this process ends.
func Start(ctx context.Context, opts Options) (*Cluster, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()

	c, err := prepare(&opts)
	if err != nil {
		return nil, fmt.Errorf("starting cluster %s: %w", opts.Name, err)
	}
	if opts.Mode == ModeKind {
		err = c.startKind(ctx)
	} else {
		err = c.startLocal(ctx)
	}
	if err == nil {
		err = c.startKubelets(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting cluster %s: %w", opts.Name, err), c.Stop())
	}
	return c, nil
}

// prepare defaults opts, finds the binaries and makes an empty folder.
func prepare(opts *Options) (*Cluster, error) {
	opts.Name = cmp.Or(opts.Name, "default")
	opts.Mode = cmp.Or(opts.Mode, Mode(os.Getenv("CLUSTER")), ModeLocal)
	opts.K8S = cmp.Or(opts.K8S, os.Getenv("K8S"))
	if opts.Mode != ModeLocal && opts.Mode != ModeKind {
		return nil, fmt.Errorf("mode %q is neither %s nor %s", opts.Mode, ModeLocal, ModeKind)
	}
	if opts.Root == "" {
		root, err := binaries.RepoRoot(".")
		if err != nil {
			return nil, err
		}
		opts.Root = root
	}
	if opts.Dir == "" {
		opts.Dir = DefaultDir(opts.Root, opts.Name)
	}
	versions, err := binaries.VersionsOf(opts.Root, opts.K8S)
	if err != nil {
		return nil, err
	}
	c := &Cluster{
		Name: opts.Name, Mode: opts.Mode, Dir: opts.Dir,
		AuditLog: auditLogPath(opts.Dir),
		binaries: binaries.Find(opts.Root, versions),
	}
	if missing := c.binaries.Missing(programNames()...); len(missing) > 0 {
		_, err := c.binaries.Path(missing[0])
		return nil, err
	}
	return c, c.emptyDir()
}

// DefaultDir is where the cluster called name keeps its state.
func DefaultDir(root, name string) string { return filepath.Join(root, ".bin", "run", name) }

// emptyDir replaces the state of an earlier cluster, unless that still runs.
func (c *Cluster) emptyDir() error {
	pids, err := filepath.Glob(filepath.Join(c.Dir, "*.pid"))
	if err != nil {
		return err
	}
	for _, path := range pids {
		if pid, err := readPid(path); err == nil && pid != 0 && pid != os.Getpid() {
			return fmt.Errorf("%s of an earlier cluster in %s still runs as process %d",
				filepath.Base(path[:len(path)-len(".pid")]), c.Dir, pid)
		}
	}
	if err := os.RemoveAll(c.Dir); err != nil {
		return err
	}
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return err
	}
	return writePid(filepath.Join(c.Dir, ownerPid), os.Getpid())
}

// ownerPid is the pid file of the process that called Start.
const ownerPid = "owner.pid"

// Owner returns the process that runs the cluster in dir, or 0 if none does.
func Owner(dir string) (int, error) { return readPid(filepath.Join(dir, ownerPid)) }

// Stop ends the cluster's processes and no others. The state stays in Dir.
func (c *Cluster) Stop() error {
	c.stopOnce.Do(func() {
		if c.stopKubelets != nil {
			c.stopKubelets()
		}
		errs := []error{c.stopProcesses()}
		if c.stopMode != nil {
			errs = append(errs, c.stopMode())
		}
		if err := os.Remove(filepath.Join(c.Dir, ownerPid)); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
		c.stopErr = errors.Join(errs...)
	})
	return c.stopErr
}

// stopProcesses ends clients before servers. Only etcd has anything to finish; the
// API server would wait for its watches to end.
func (c *Cluster) stopProcesses() error {
	var errs []error
	for _, p := range slices.Backward(c.processes) {
		errs = append(errs, p.Stop(2*time.Second))
	}
	return errors.Join(errs...)
}

// Wait blocks until ctx ends, which is no error, or a component does, which is.
func (c *Cluster) Wait(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan *Process)
	for _, p := range c.processes {
		go func() {
			select {
			case <-p.Done():
				select {
				case ended <- p:
				case <-ctx.Done():
				}
			case <-ctx.Done():
			}
		}()
	}
	select {
	case p := <-ended:
		return p.failure("ended")
	case <-ctx.Done():
		return nil
	}
}

// Config returns a client configuration of the admin, without client-side
// throttling: the API server's priority and fairness is the only limit.
func (c *Cluster) Config() *rest.Config { return rest.CopyConfig(c.config) }
