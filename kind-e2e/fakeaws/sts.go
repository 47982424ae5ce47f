// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"encoding/base64"
	"encoding/json"
	"strings"
)

type callerIdentityReply struct {
	Account string `xml:"Account"`
	ARN     string `xml:"Arn"`
	UserID  string `xml:"UserId"`
}

func getCallerIdentity(s *Server, r *request) (any, error) {
	return callerIdentityReply{Account: s.opts.AccountID, ARN: "arn:aws:iam::" + s.opts.AccountID + ":user/" + r.accessKey, UserID: r.accessKey}, nil
}

// encodedPrefix marks the encoded authorization failures of this endpoint.
const encodedPrefix = "fakeaws-"

// encodedFailure is what AWS lets only those read who may call DecodeAuthorizationMessage.
func encodedFailure(service, action string) string {
	text, err := json.Marshal(map[string]any{
		"allowed": false, "explicitDeny": false, "matchedStatements": map[string]any{"items": []any{}},
		"context": map[string]any{"action": service + ":" + action, "resource": "*", "conditions": map[string]any{"items": []any{}}},
	})
	if err != nil { // strings always encode
		return encodedPrefix
	}
	return encodedPrefix + base64.RawURLEncoding.EncodeToString(text)
}

type decodedMessageReply struct {
	Message string `xml:"DecodedMessage"`
}

func decodeAuthorizationMessage(_ *Server, r *request) (any, error) {
	encoded, known := strings.CutPrefix(r.form.get("EncodedMessage"), encodedPrefix)
	text, err := base64.RawURLEncoding.DecodeString(encoded)
	if !known || err != nil {
		return nil, errorf("InvalidAuthorizationMessageException", "The encoded message is not valid")
	}
	return decodedMessageReply{Message: string(text)}, nil
}
