// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"errors"
	"fmt"
)

var (
	// ErrInstanceNotFound says that the cloud no longer has the instance.
	ErrInstanceNotFound = errors.New("instance not found")
	// ErrNotReady says that a NodeClass has not been resolved yet.
	ErrNotReady = errors.New("node class not ready")
)

// LaunchFailure is the kind of a failed launch: it decides what happens next, never the message.
type LaunchFailure string

const (
	// InsufficientCapacity: no offering of the request had a machine; other offerings may.
	InsufficientCapacity LaunchFailure = "InsufficientCapacity"
	// NodeClassNotReady: the class must be repaired first (image, subnet, profile, permission).
	NodeClassNotReady LaunchFailure = "NodeClassNotReady"
	// TokenMismatch: the token was used with other parameters: a machine may exist, find it by tag first.
	TokenMismatch LaunchFailure = "TokenMismatch"
	// Throttled: the cloud did not act on it, for a reason that passes by itself: the same again, later.
	Throttled LaunchFailure = "Throttled"
	// Unknown: no answer, or one that says nothing about the outcome: repeat with the same token.
	Unknown LaunchFailure = "Unknown"
	// Rejected: the cloud refused the request as such; repeating it is useless.
	Rejected LaunchFailure = "Rejected"
)

// LaunchError is the error of Interface.Launch.
type LaunchError struct {
	Failure LaunchFailure
	// Code is the cloud's error code, if it gave one.
	Code string
	// Reason is the condition reason that Karpenter's users know: Unauthorized, VCPULimitExceeded, LaunchFailed, …
	Reason string
	// Untried: the cloud was not asked at all. Then it says nothing about an earlier launch with the token.
	Untried bool
	// Spent: the token has had its answer, and gives the same for ever: another try needs another token.
	Spent bool
	// Failures per offering, if the cloud named them.
	Failures []OfferingFailure
	Err      error
}

// Error implements error.
func (e *LaunchError) Error() string {
	if e.Code != "" {
		return fmt.Sprintf("launching: %s: %s: %v", e.Failure, e.Code, e.Err)
	}
	return fmt.Sprintf("launching: %s: %v", e.Failure, e.Err)
}

// Unwrap gives the cloud's own error.
func (e *LaunchError) Unwrap() error { return e.Err }
