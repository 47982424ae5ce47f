// SPDX-License-Identifier: Apache-2.0

package simtest

import (
	"os"
	"os/signal"
	"syscall"
	"testing"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// Main is the body of a TestMain. The scheduler's cache debugger calls signal.Notify: the first call of a process
// starts a goroutine, which must not be born inside a bubble.
func Main(m *testing.M) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGUSR2)
	signal.Stop(c)
	// The second handler slows a process that logs many errors, by the time of the last one: of another bubble.
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1]
	os.Exit(m.Run())
}
