// SPDX-License-Identifier: Apache-2.0

package simtest

import (
	"os"
	"os/signal"
	"syscall"
	"testing"
)

// Main is the body of a TestMain. The scheduler's cache debugger calls signal.Notify: the first call of a process
// starts a goroutine, which must not be born inside a bubble.
func Main(m *testing.M) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGUSR2)
	signal.Stop(c)
	os.Exit(m.Run())
}
