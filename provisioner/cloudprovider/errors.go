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
