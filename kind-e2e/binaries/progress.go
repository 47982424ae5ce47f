// SPDX-License-Identifier: Apache-2.0

package binaries

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"
)

const (
	progressEvery = 15 * time.Second
	// tailLines of a failed build's output are shown.
	tailLines = 30
)

// progress prints lines that start with the time since it was made.
type progress struct {
	mu    sync.Mutex
	out   io.Writer
	start time.Time
}

func newProgress(out io.Writer) *progress { return &progress{out: out, start: time.Now()} }

func (p *progress) printf(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.out, "[%4ds] %s\n", int(time.Since(p.start).Seconds()), fmt.Sprintf(format, args...))
}

// run runs go build -v, which names each package that it compiles, and prints
// how far it is from time to time. Its error ends in the build's last lines.
func (p *progress) run(cmd *exec.Cmd, name string) error {
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	var compiled, downloads int
	var tail []string
	lines := make(chan string)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(stderr); s.Scan(); {
			lines <- s.Text()
		}
	}()
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for open := true; open; {
		var line string
		select {
		case line, open = <-lines:
			switch {
			case !open:
			case strings.HasPrefix(line, "go: downloading "):
				downloads++
			case isPackage(line):
				compiled++
			default:
				tail = append(tail, line)
			}
		case <-tick.C:
			if compiled+downloads == 0 {
				p.printf("%s: at work, nothing to count yet", name)
				continue
			}
			p.printf("%s: %d packages compiled, %d modules downloaded", name, compiled, downloads)
		}
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%w\n%s", err, strings.Join(tail[max(0, len(tail)-tailLines):], "\n"))
	}
	return nil
}

// isPackage tells an import path from a compiler's message.
func isPackage(line string) bool {
	return line != "" && !strings.ContainsAny(line, " :#\t")
}
