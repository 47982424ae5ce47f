// SPDX-License-Identifier: Apache-2.0

// Package simtest runs the real scheduler with our plugin and adapter over a fake clientset inside a testing/synctest
// bubble: virtual time, no API server. It is for tests only and decides nothing.
//
// Rules of a bubble: the package's TestMain calls Main, which touches os/signal before any bubble exists; Start is
// called inside synctest.Test with the bubble's t and stops everything at its end; goroutines run in no fixed order
// within one instant, so compare what holds after synctest.Wait, or sort.
package simtest
