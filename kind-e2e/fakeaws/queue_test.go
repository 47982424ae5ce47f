// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// SQS and ARC have no client among this module's dependencies: the wire is spoken by hand.
func TestQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _ := start(t, Options{})
		call := func(action, body string) (int, http.Header, map[string]any) {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://sqs.invalid/", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("X-Amz-Target", "AmazonSQS."+action)
			return roundTrip(t, s, request)
		}
		status, header, reply := call("GetQueueUrl", `{"QueueName":"demo"}`)
		if status != 400 || header.Get("X-Amzn-Query-Error") != "AWS.SimpleQueueService.NonExistentQueue;Sender" || reply["__type"] != "com.amazonaws.sqs#QueueDoesNotExist" {
			t.Errorf("a missing queue: status %d, header %v, body %v", status, header, reply)
		}
		s.CreateQueue("demo")
		_, _, reply = call("GetQueueUrl", `{"QueueName":"demo"}`)
		url := reply["QueueUrl"].(string)
		began := time.Now()
		_, _, reply = call("ReceiveMessage", `{"QueueUrl":"`+url+`","WaitTimeSeconds":20,"VisibilityTimeout":20}`)
		if took := time.Since(began); took != 20*time.Second || reply["Messages"] != nil {
			t.Errorf("an empty poll took %v and gave %v", took, reply)
		}
		if s.SendMessage("other", "x") || !s.SendMessage("demo", "hello") {
			t.Error("sending to a queue depends on its existence")
		}
		_, _, reply = call("ReceiveMessage", `{"QueueUrl":"`+url+`","WaitTimeSeconds":20,"VisibilityTimeout":20}`)
		message := reply["Messages"].([]any)[0].(map[string]any)
		if message["Body"] != "hello" || message["MD5OfBody"] != "5d41402abc4b2a76b9719d911017c592" {
			t.Errorf("got %v", message)
		}
		if _, _, hidden := call("ReceiveMessage", `{"QueueUrl":"`+url+`"}`); hidden["Messages"] != nil {
			t.Errorf("a message in flight was given out again: %v", hidden)
		}
		time.Sleep(21 * time.Second)
		_, _, reply = call("ReceiveMessage", `{"QueueUrl":"`+url+`"}`)
		receipt := reply["Messages"].([]any)[0].(map[string]any)["ReceiptHandle"].(string)
		call("DeleteMessage", `{"QueueUrl":"`+url+`","ReceiptHandle":"`+receipt+`"}`)
		_, _, reply = call("GetQueueAttributes", `{"QueueUrl":"`+url+`"}`)
		if diff := cmp.Diff(map[string]any{"Attributes": map[string]any{"ApproximateNumberOfMessages": "0", "ApproximateNumberOfMessagesNotVisible": "0"}}, reply); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestZonalShiftAndUnknownCalls(t *testing.T) {
	t.Parallel()
	s, _ := start(t, Options{})
	request := func(method, path, body string) *http.Request {
		r, err := http.NewRequestWithContext(t.Context(), method, "http://aws.invalid"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	status, _, reply := roundTrip(t, s, request(http.MethodGet, "/managedresources/arn%3Aaws%3Aeks%3Aus-east-1%3A111122223333%3Acluster%2Fdemo", ""))
	if status != 200 || len(reply["zonalShifts"].([]any)) != 0 {
		t.Errorf("got status %d, %v", status, reply)
	}
	if status, header, _ := roundTrip(t, s, request(http.MethodGet, "/managedresources/other", "")); status != 404 || header.Get("X-Amzn-Errortype") != "ResourceNotFoundException" {
		t.Errorf("got status %d, header %v", status, header)
	}
	for _, body := range []string{"Action=RunMagic&Version=2016-11-15", "Action=DescribeInstances&Version=2001-01-01", "%zz", ""} {
		response, err := s.HTTPClient().Do(request(http.MethodPost, "/", body))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != 400 || !strings.Contains(string(text), "<Code>") {
			t.Errorf("%q: got status %d, %s", body, response.StatusCode, text)
		}
	}
}

func roundTrip(t *testing.T, s *Server, request *http.Request) (int, http.Header, map[string]any) {
	t.Helper()
	response, err := s.HTTPClient().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	reply := map[string]any{}
	if err := json.NewDecoder(response.Body).Decode(&reply); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, response.Header, reply
}
