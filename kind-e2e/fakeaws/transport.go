// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
)

// AWSConfig points the real SDK at this server, in process and without sockets.
func (s *Server) AWSConfig(accessKey string) aws.Config {
	return aws.Config{
		Region:       s.opts.Region,
		Credentials:  aws.NewCredentialsCache(credentials.NewStaticCredentialsProvider(accessKey, "secret", "")),
		HTTPClient:   s.HTTPClient(),
		BaseEndpoint: aws.String("http://fakeaws.invalid"),
	}
}

// HTTPClient returns a client whose every request this server answers, whatever its host.
func (s *Server) HTTPClient() *http.Client { return &http.Client{Transport: s.RoundTripper()} }

// RoundTripper dispatches requests in process. Delays pass in the time of the caller's
// testing/synctest bubble, if it is in one.
func (s *Server) RoundTripper() http.RoundTripper { return inProcess{s} }

type inProcess struct{ server *Server }

// RoundTrip answers from the server. A call goes on when its context ends, as in a real endpoint.
func (t inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := readAndClose(r.Body)
	if err != nil {
		return nil, err
	}
	inner := r.Clone(r.Context())
	inner.Body = io.NopCloser(bytes.NewReader(body))
	done := make(chan *http.Response, 1)
	started := t.server.spawn(func() {
		recorder := &recorder{header: http.Header{}, status: http.StatusOK}
		if !t.server.serve(recorder, inner) {
			close(done)
			return
		}
		done <- recorder.response(r)
	})
	if !started {
		return nil, reset()
	}
	select {
	case response, answered := <-done:
		if !answered {
			return nil, reset()
		}
		return response, nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

func readAndClose(body io.ReadCloser) ([]byte, error) {
	if body == nil {
		return nil, nil
	}
	data, err := io.ReadAll(body)
	if closeErr := body.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return nil, fmt.Errorf("reading the request body: %w", err)
	}
	return data, nil
}

func reset() error {
	return &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
}

// recorder is a ResponseWriter that keeps the reply.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(status int)      { r.status = status }
func (r *recorder) Write(p []byte) (int, error) { return r.body.Write(p) }

func (r *recorder) response(request *http.Request) *http.Response {
	return &http.Response{
		Status: http.StatusText(r.status), StatusCode: r.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: r.header, Body: io.NopCloser(&r.body), ContentLength: int64(r.body.Len()), Request: request,
	}
}
