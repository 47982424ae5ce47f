// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"maps"
	"slices"
	"strings"
)

// fingerprint is equal for two requests with the same parameters, the client token left out.
func (f form) fingerprint() string {
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(f)) {
		if key != "ClientToken" {
			text.WriteString(key + "\x00" + f[key] + "\x00")
		}
	}
	return text.String()
}

func errTokenMismatch(token string) *apiError {
	return errorf("IdempotentParameterMismatch", "The client token '%s' was used before, with other parameters.", token)
}
