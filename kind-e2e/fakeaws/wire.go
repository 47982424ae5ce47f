// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"net/http"
	"strings"
)

// id is the request id of a reply: the call's number in the log.
func (r *request) id() string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", r.seq) }

// queryErrors gives SQS errors the names that its query-compatible clients expect.
var queryErrors = map[string]string{
	"QueueDoesNotExist": "AWS.SimpleQueueService.NonExistentQueue",
}

// writeReply encodes a reply or an error in the call's protocol. An unwritable reply means that the
// client is gone.
func writeReply(w http.ResponseWriter, req *request, body any, failure *apiError) {
	if req == nil {
		req = &request{protocol: ec2Query}
	}
	status, data := http.StatusOK, []byte(nil)
	if failure != nil {
		status = failure.httpStatus()
		data = encodeError(w, req, failure)
	} else {
		var err error
		if data, err = encodeBody(req, body); err != nil {
			failure = errorf("InternalError", "encoding the reply: %v", err)
			status, data = failure.httpStatus(), encodeError(w, req, failure)
		}
	}
	w.Header().Set("Content-Type", contentType(req))
	w.Header().Set("X-Amzn-Requestid", req.id())
	w.WriteHeader(status)
	_, _ = w.Write(data)
}

func contentType(req *request) string {
	switch req.protocol {
	case awsJSON:
		if req.service == "sqs" {
			return "application/x-amz-json-1.0"
		}
		return "application/x-amz-json-1.1"
	case restJSON:
		return "application/json"
	case ec2Query, awsQuery:
	}
	return "text/xml;charset=UTF-8"
}

func encodeBody(req *request, body any) ([]byte, error) {
	if req.protocol == awsJSON || req.protocol == restJSON {
		if body == nil {
			body = struct{}{}
		}
		return json.Marshal(body)
	}
	inner, err := xmlFields(body)
	if err != nil {
		return nil, err
	}
	if req.protocol == ec2Query {
		return fmt.Appendf(nil, `%s<%sResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><requestId>%s</requestId>%s</%sResponse>`,
			xml.Header, req.action, req.id(), inner, req.action), nil
	}
	return fmt.Appendf(nil, `%s<%sResponse><%sResult>%s</%sResult><ResponseMetadata><RequestId>%s</RequestId></ResponseMetadata></%sResponse>`,
		xml.Header, req.action, req.action, inner, req.action, req.id(), req.action), nil
}

// xmlFields encodes a structure without its root element.
func xmlFields(body any) ([]byte, error) {
	if body == nil {
		return nil, nil
	}
	var buffer bytes.Buffer
	root := xml.StartElement{Name: xml.Name{Local: "root"}}
	if err := xml.NewEncoder(&buffer).EncodeElement(body, root); err != nil {
		return nil, err
	}
	return []byte(strings.TrimSuffix(strings.TrimPrefix(buffer.String(), "<root>"), "</root>")), nil
}

func encodeError(w http.ResponseWriter, req *request, failure *apiError) []byte {
	escape := func(text string) string {
		var buffer bytes.Buffer
		_ = xml.EscapeText(&buffer, []byte(text)) // a buffer takes everything
		return buffer.String()
	}
	switch req.protocol {
	case awsJSON, restJSON:
		w.Header().Set("X-Amzn-Errortype", failure.Code)
		if query, ok := queryErrors[failure.Code]; ok && req.service == "sqs" {
			w.Header().Set("X-Amzn-Query-Error", query+";Sender")
		}
		kind := failure.Code
		if req.service == "sqs" {
			kind = "com.amazonaws.sqs#" + kind
		}
		data, err := json.Marshal(map[string]string{"__type": kind, "message": failure.Message})
		if err != nil {
			return []byte("{}")
		}
		return data
	case awsQuery:
		return fmt.Appendf(nil, `%s<ErrorResponse><Error><Type>Sender</Type><Code>%s</Code><Message>%s</Message></Error><RequestId>%s</RequestId></ErrorResponse>`,
			xml.Header, escape(failure.Code), escape(failure.Message), req.id())
	case ec2Query:
	}
	return fmt.Appendf(nil, `%s<Response><Errors><Error><Code>%s</Code><Message>%s</Message></Error></Errors><RequestID>%s</RequestID></Response>`,
		xml.Header, escape(failure.Code), escape(failure.Message), req.id())
}
