// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"encoding/base64"
	"encoding/json"
)

// EncodedDenial is the end of an authorization failure's message as EC2 writes it: what DecodeAuthorizationMessage makes
// readable again. It is for the message of a fault.
func EncodedDenial(action, resource, principal string) string {
	text, err := json.Marshal(map[string]any{
		"allowed": false, "explicitDeny": false,
		"matchedStatements": map[string]any{"items": []any{}}, "failures": map[string]any{"items": []any{}},
		"context": map[string]any{"principal": map[string]any{"arn": principal}, "action": action, "resource": resource, "conditions": map[string]any{"items": []any{}}},
	})
	if err != nil {
		return ""
	}
	return "Encoded authorization failure message: " + encodedPrefix + base64.RawURLEncoding.EncodeToString(text)
}
