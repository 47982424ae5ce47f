// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"fmt"
	"net/http"
)

// apiError is an error as AWS reports it. A zero Status means the one that AWS uses for the code.
type apiError struct {
	Code    string
	Message string
	Status  int
}

func (e *apiError) Error() string { return e.Code + ": " + e.Message }

func errorf(code, format string, args ...any) *apiError {
	return &apiError{Code: code, Message: fmt.Sprintf(format, args...)}
}

var statusByCode = map[string]int{
	"AccessDenied":              http.StatusForbidden,
	"AuthFailure":               http.StatusUnauthorized,
	"DeleteConflict":            http.StatusConflict,
	"DryRunOperation":           http.StatusPreconditionFailed,
	"EntityAlreadyExists":       http.StatusConflict,
	"InternalError":             http.StatusInternalServerError,
	"InternalFailure":           http.StatusInternalServerError,
	"LimitExceeded":             http.StatusConflict,
	"NoSuchEntity":              http.StatusNotFound,
	"RequestExpired":            http.StatusBadRequest,
	"RequestLimitExceeded":      http.StatusServiceUnavailable,
	"ResourceNotFoundException": http.StatusNotFound,
	"ServiceUnavailable":        http.StatusServiceUnavailable,
	"Unavailable":               http.StatusServiceUnavailable,
	"UnauthorizedOperation":     http.StatusForbidden,
}

func (e *apiError) httpStatus() int {
	if e.Status != 0 {
		return e.Status
	}
	if status, ok := statusByCode[e.Code]; ok {
		return status
	}
	return http.StatusBadRequest
}

// errDryRun is what a valid call with DryRun answers.
func errDryRun() *apiError {
	return errorf("DryRunOperation", "Request would have succeeded, but DryRun flag is set.")
}
