// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/fakeaws"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	const endpoint = "http://fakeaws.invalid"
	cases := map[string]struct {
		change func(*fakeaws.Server, *Options)
		want   CheckFailure // empty: all is well
	}{
		"well":    {func(*fakeaws.Server, *Options) {}, ""},
		"cluster": {func(_ *fakeaws.Server, o *Options) { o.ClusterName = "other" }, ClusterNotFound},
		"no key": {func(_ *fakeaws.Server, o *Options) {
			o.AWS.Credentials = credentials.NewStaticCredentialsProvider("", "", "")
		}, CredentialsRefused},
		"none": {func(_ *fakeaws.Server, o *Options) { o.AWS.Credentials = nil }, CredentialsRefused},
		"expired": {func(s *fakeaws.Server, _ *Options) {
			s.SetFault(fakeaws.Rule{Code: "ExpiredTokenException", Status: 403})
		}, CredentialsRefused},
		"expired ec2": {func(s *fakeaws.Server, _ *Options) {
			s.SetFault(fakeaws.Rule{Service: "ec2", Code: "AuthFailure", Status: 401})
		}, CredentialsRefused},
		"permission": {func(s *fakeaws.Server, _ *Options) {
			s.SetFault(fakeaws.Rule{Service: "ec2", Code: "UnauthorizedOperation", Status: 403})
		}, NotPermitted},
		"fault": {func(s *fakeaws.Server, _ *Options) {
			s.SetFault(fakeaws.Rule{Code: "ValidationException", Status: 400})
		}, ServiceFault},
		"down": {func(s *fakeaws.Server, o *Options) {
			o.AWS.RetryMaxAttempts = 1
			s.SetFault(fakeaws.Rule{DropRequest: true})
		}, Unreachable},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := fakeaws.New(fakeaws.Options{ClusterName: "demo"})
			t.Cleanup(server.Close)
			options := Options{ClusterName: "demo", AWS: server.AWSConfig("AKIATEST")}
			tc.change(server, &options)
			err := New(options).Check(t.Context())
			if tc.want == "" {
				if err != nil {
					t.Errorf("Check: %v", err)
				}
				return
			}
			failure, ok := errors.AsType[*CheckError](err)
			if !ok || failure.Failure != tc.want || failure.Endpoint != endpoint || !strings.Contains(err.Error(), endpoint) {
				t.Errorf("Check: %v, want %s at %s", err, tc.want, endpoint)
			}
		})
	}
}

func TestEndpointNames(t *testing.T) {
	t.Parallel()
	p := New(Options{ClusterName: "demo", AWS: aws.Config{Region: "eu-west-1"}})
	if p.endpoints["ec2"] != "https://ec2.eu-west-1.amazonaws.com" || p.endpoints["eks"] != "https://eks.eu-west-1.amazonaws.com" {
		t.Errorf("endpoints: %v", p.endpoints)
	}
}
