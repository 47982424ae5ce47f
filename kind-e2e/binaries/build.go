// SPDX-License-Identifier: Apache-2.0

package binaries

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/mod/module"
)

// buildTimeout bounds one program's build, dependencies' download included.
const buildTimeout = 45 * time.Minute

// Build builds those of names that are missing and returns the set. Progress
// goes to out, one line each, with the time since the start. An interrupted
// build goes on from the Go build cache.
func Build(ctx context.Context, root string, v Versions, names []string, out io.Writer) (Set, error) {
	set := Find(root, v)
	all, err := programs(v)
	if err != nil {
		return set, err
	}
	for _, name := range names {
		if _, ok := all[name]; !ok {
			return set, fmt.Errorf("no program is called %q", name)
		}
	}
	progress := newProgress(out)
	unlock, err := lock(ctx, set.bin, func() { progress.printf("waiting for another build in %s", set.bin) })
	if err != nil {
		return set, err
	}
	defer unlock()

	missing := set.Missing(names...)
	if len(missing) == 0 {
		progress.printf("all %d binaries are built", len(names))
		return set, nil
	}
	progress.printf("building %d of %d binaries into %s; with a cold Go cache this takes about 10 minutes on 4 cores",
		len(missing), len(names), set.bin)
	for i, name := range missing {
		progress.printf("%s %s: building (%d of %d)", name, all[name].version, i+1, len(missing))
		if err := set.build(ctx, all[name], progress); err != nil {
			return set, fmt.Errorf("building %s %s: %w", name, all[name].version, err)
		}
		progress.printf("%s %s: done", name, all[name].version)
	}
	return set, nil
}

func (s Set) build(ctx context.Context, p program, progress *progress) error {
	ctx, cancel := context.WithTimeout(ctx, buildTimeout)
	defer cancel()

	dir := filepath.Join(s.bin, "build", p.name+"-"+p.version)
	if err := writeBuildModule(ctx, dir, p); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(s.path(p)), 0o755); err != nil {
		return err
	}
	partial := s.path(p) + ".partial"
	cmd := goCommand(ctx, dir, "build", "-mod=mod", "-v", "-trimpath", "-ldflags", p.ldflags(), "-o", partial, p.pkg)
	if err := progress.run(cmd, p.name); err != nil {
		return err
	}
	// The stamp goes first and comes last: a binary with a stamp is whole.
	if err := os.Remove(s.stampPath(p)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.Rename(partial, s.path(p)); err != nil {
		return err
	}
	return os.WriteFile(s.stampPath(p), []byte(p.stamp()), 0o644)
}

// writeBuildModule writes go.mod and go.sum of the module that p is built in.
func writeBuildModule(ctx context.Context, dir string, p program) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	downloaded, err := download(ctx, p.graph)
	if err != nil {
		return err
	}
	goMod, err := os.ReadFile(downloaded.GoMod)
	if err != nil {
		return err
	}
	goMod, err = buildModule(goMod, p.graph, p.pins)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), goMod, 0o644); err != nil {
		return err
	}
	// The release's own checksums, so that few have to be looked up.
	sums, err := os.ReadFile(filepath.Join(downloaded.Dir, "go.sum"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "go.sum"), sums, 0o644)
}

// downloaded is the part that we use of what go mod download -json prints.
type downloaded struct{ Dir, GoMod, Error string }

func download(ctx context.Context, m module.Version) (downloaded, error) {
	// Outside of any module, whose go.mod the go command would read.
	cmd := goCommand(ctx, os.TempDir(), "mod", "download", "-json", m.String())
	stdout, err := cmd.Output()
	var d downloaded
	if jsonErr := json.Unmarshal(stdout, &d); jsonErr != nil && err == nil {
		err = jsonErr
	}
	if d.Error != "" {
		err = errors.New(d.Error)
	}
	if err != nil {
		return d, fmt.Errorf("downloading %s: %w", m, err)
	}
	return d, nil
}

// goCommand is a go command that knows nothing of this repository's modules and
// dies with its parent.
func goCommand(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=", "PWD="+dir)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// lock keeps two builds from writing the same files. If there is another, it
// calls waiting, once, and waits.
func lock(ctx context.Context, bin string, waiting func()) (unlock func(), err error) {
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(bin, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for first := true; ; first = false {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil // closing releases the lock
		}
		if first {
			waiting()
		}
		select {
		case <-ctx.Done():
			_ = f.Close()
			return nil, fmt.Errorf("waiting for another build: %w", ctx.Err())
		case <-time.After(200 * time.Millisecond):
		}
	}
}
