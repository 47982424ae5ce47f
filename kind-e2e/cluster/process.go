// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// ProcessSpec is a program to run.
type ProcessSpec struct {
	// Name is what errors, the log file and the pid file are called by.
	Name string
	Path string
	Args []string
	// Env is added to the caller's environment.
	Env []string
	// Dir gets <Name>.log and <Name>.pid. A log that is there is appended to.
	Dir string
}

// Process is a running program with a process group of its own. It is killed if
// the process that started it dies.
type Process struct {
	name    string
	pid     int
	logPath string
	pidPath string
	done    chan struct{}
	err     error // set before done is closed
}

// StartProcess starts a program; its output goes to its log file.
func StartProcess(spec ProcessSpec) (*Process, error) {
	p := &Process{
		name:    spec.Name,
		logPath: filepath.Join(spec.Dir, spec.Name+".log"),
		pidPath: filepath.Join(spec.Dir, spec.Name+".pid"),
		done:    make(chan struct{}),
	}
	logFile, err := os.OpenFile(p.logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", spec.Name, err)
	}
	defer logFile.Close()
	cmd := exec.Command(spec.Path, spec.Args...)
	cmd.Env = append(os.Environ(), spec.Env...)
	cmd.Stdout, cmd.Stderr = logFile, logFile
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}

	started := make(chan error)
	go func() {
		// The kernel sends Pdeathsig when the thread that forked ends, not the
		// process, so that thread stays with this goroutine until the child ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		if err == nil {
			p.pid = cmd.Process.Pid
			// Before Wait: a process that was waited for has no state to read.
			if err = writePid(p.pidPath, p.pid); err != nil {
				_ = syscall.Kill(-p.pid, syscall.SIGKILL)
				_ = cmd.Wait()
			}
		}
		started <- err
		if err != nil {
			return
		}
		p.err = cmd.Wait()
		_ = os.Remove(p.pidPath)
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", spec.Name, err)
	}
	return p, nil
}

// Pid returns the process id.
func (p *Process) Pid() int { return p.pid }

// LogPath returns the path of the log file.
func (p *Process) LogPath() string { return p.logPath }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err returns how the process ended: nil for exit code 0 and for one that still
// runs, else what exec.Cmd.Wait gives.
func (p *Process) Err() error {
	if !p.ended() {
		return nil
	}
	return p.err
}

func (p *Process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Signal sends sig to the whole process group. Nothing is sent to a process that
// has ended, whose id may be somebody else's by now.
func (p *Process) Signal(sig syscall.Signal) error {
	if p.ended() {
		return nil
	}
	if err := syscall.Kill(-p.pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signalling %s: %w", p.name, err)
	}
	return nil
}

// Kill sends SIGKILL to the process group and waits for the end.
func (p *Process) Kill() error {
	if err := p.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.done
	return nil
}

// Stop sends SIGTERM to the process group, and SIGKILL after grace. It returns
// when the process has ended; how it ended is in Err.
func (p *Process) Stop(grace time.Duration) error {
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-timer.C:
		return p.Kill()
	}
}

// Tail returns the last n lines of the log, for error messages.
func (p *Process) Tail(n int) string {
	data, err := os.ReadFile(p.logPath)
	if err != nil {
		return err.Error()
	}
	lines := bytes.Split(bytes.TrimRight(data, "\n"), []byte("\n"))
	lines = lines[max(0, len(lines)-n):]
	return string(bytes.Join(lines, []byte("\n")))
}

// writePid stores the id and the start time of a process, which together name
// it for good: ids are used again.
func writePid(path string, pid int) error {
	started, err := startTime(pid)
	if err != nil {
		return err
	}
	return os.WriteFile(path, fmt.Appendf(nil, "%d %s\n", pid, started), 0o644)
}

// readPid returns the process that path names if it still runs, else 0.
func readPid(path string) (int, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	var pid int
	var started string
	if _, err := fmt.Sscanf(string(data), "%d %s", &pid, &started); err != nil {
		return 0, fmt.Errorf("reading %s: %w", path, err)
	}
	if now, err := startTime(pid); err != nil || now != started {
		return 0, nil
	}
	return pid, nil
}

// startTime returns when a process started, in the kernel's clock ticks.
func startTime(pid int) (string, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", err
	}
	// The second field, the name, is in parentheses and may hold anything.
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	const startTimeField = 22 - 3 // counted from the third field
	if len(fields) <= startTimeField {
		return "", fmt.Errorf("process %d has an unreadable state", pid)
	}
	return fields[startTimeField], nil
}
