// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func startShell(t *testing.T, script string) *Process {
	t.Helper()
	p, err := StartProcess(ProcessSpec{
		Name: "shell", Path: "/bin/sh", Args: []string{"-c", script}, Env: []string{"GREETING=hello"}, Dir: t.TempDir(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Kill() })
	return p
}

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("waited in vain for %s", what)
}

func TestProcessEnds(t *testing.T) {
	t.Parallel()
	p := startShell(t, "echo $GREETING; echo 2; echo 3 >&2; exit 7")
	<-p.Done()
	exit, ok := errors.AsType[*exec.ExitError](p.Err())
	if !ok || exit.ExitCode() != 7 {
		t.Errorf("got %v, want exit code 7", p.Err())
	}
	if got, want := p.Tail(2), "2\n3"; got != want {
		t.Errorf("the tail is %q, want %q", got, want)
	}
	if err := p.failure("ended"); !strings.Contains(err.Error(), "hello\n2\n3") || !strings.Contains(err.Error(), "exit status 7") {
		t.Errorf("the failure shows neither log nor code: %v", err)
	}
	if _, err := os.Stat(p.pidPath); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the pid file is left: %v", err)
	}
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Errorf("signalling a process that ended: %v", err)
	}
}

func TestProcessStopEndsTheGroup(t *testing.T) {
	t.Parallel()
	// The shell ignores SIGTERM, and so does the child that it waits for.
	p := startShell(t, "trap '' TERM; sleep 1000 & echo $!; wait; sleep 1000")
	var child string
	waitFor(t, "the child's id", func() bool { child = strings.TrimSpace(p.Tail(1)); return child != "" })
	if pid, err := readPid(p.pidPath); err != nil || pid != p.Pid() {
		t.Errorf("the pid file has %d, error %v; want %d", pid, err, p.Pid())
	}
	if err := p.Stop(50 * time.Millisecond); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the child's end", func() bool {
		stat, err := os.ReadFile(filepath.Join("/proc", child, "stat"))
		return err != nil || strings.Contains(string(stat), ") Z ")
	})
}

func TestReadPid(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "pid")
	if pid, err := readPid(path); pid != 0 || err != nil {
		t.Errorf("no file: got %d, error %v", pid, err)
	}
	if err := writePid(path, os.Getpid()); err != nil {
		t.Fatal(err)
	}
	if pid, err := readPid(path); pid != os.Getpid() || err != nil {
		t.Errorf("our own: got %d, error %v", pid, err)
	}
	// The same id with another start time is somebody else.
	if err := os.WriteFile(path, []byte("1 999999999999\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if pid, err := readPid(path); pid != 0 || err != nil {
		t.Errorf("an id used again: got %d, error %v", pid, err)
	}
	if err := os.WriteFile(path, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := readPid(path); err == nil {
		t.Error("a broken file was accepted")
	}
}
