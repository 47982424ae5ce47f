// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
)

// CheckFailure is what is wrong with the way to AWS.
type CheckFailure string

const (
	// Unreachable: no answer from the endpoint.
	Unreachable CheckFailure = "Unreachable"
	// CredentialsRefused: there are none, or they are expired or unknown.
	CredentialsRefused CheckFailure = "CredentialsRefused"
	// NotPermitted: the credentials are accepted but may not make the call.
	NotPermitted CheckFailure = "NotPermitted"
	// ClusterNotFound: the account and region have no cluster of that name.
	ClusterNotFound CheckFailure = "ClusterNotFound"
	// ServiceFault: the service answered with a fault of its own.
	ServiceFault CheckFailure = "ServiceFault"
)

// CheckError is the error of Provider.Check.
type CheckError struct {
	Failure CheckFailure
	// Endpoint is the URL that was asked.
	Endpoint string
	// Cluster is the cluster's name.
	Cluster string
	Err     error
}

// Error implements error.
func (e *CheckError) Error() string {
	switch e.Failure {
	case ClusterNotFound:
		return fmt.Sprintf("AWS endpoint %s knows no cluster %q", e.Endpoint, e.Cluster)
	case CredentialsRefused:
		return fmt.Sprintf("no valid credentials for AWS endpoint %s: %v", e.Endpoint, e.Err)
	case NotPermitted:
		return fmt.Sprintf("AWS endpoint %s refuses the call: %v", e.Endpoint, e.Err)
	case Unreachable:
		return fmt.Sprintf("no answer from AWS endpoint %s: %v", e.Endpoint, e.Err)
	case ServiceFault:
	}
	return fmt.Sprintf("AWS endpoint %s: %v", e.Endpoint, e.Err)
}

// Unwrap gives the SDK's error.
func (e *CheckError) Unwrap() error { return e.Err }

// Check implements cloudprovider.Interface. EKS tells whether the cluster exists, EC2 whether it takes the same
// credentials; neither call changes anything. The error is a *CheckError.
func (p *Provider) Check(ctx context.Context) error {
	if err := p.checkCredentials(ctx); err != nil {
		return &CheckError{Failure: CredentialsRefused, Endpoint: p.endpoints["eks"], Cluster: p.opts.ClusterName, Err: err}
	}
	if !p.configuredCluster().complete() {
		_, err := call(ctx, "describing the cluster", p.eks.DescribeCluster, &eks.DescribeClusterInput{Name: &p.opts.ClusterName})
		if err != nil && !tooMany(err) {
			return p.checkError("eks", err)
		}
	}
	_, err := call(ctx, "describing instance types", p.ec2.DescribeInstanceTypes, &ec2.DescribeInstanceTypesInput{DryRun: aws.Bool(true)})
	if err != nil && errorCode(err) != "DryRunOperation" && !tooMany(err) {
		return p.checkError("ec2", err)
	}
	return nil
}

// tooMany says that AWS, or the limiter, wants fewer calls: the way to AWS is open, and the credentials were taken.
func tooMany(err error) bool {
	return errors.Is(err, errNotSent) || hasCode(err, throttleCodes)
}

// checkCredentials tells credentials that cannot be had from an endpoint that cannot be reached: the SDK's own error
// for both is the same.
func (p *Provider) checkCredentials(ctx context.Context) error {
	if p.opts.AWS.Credentials == nil {
		return errors.New("none are configured")
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := p.opts.AWS.Credentials.Retrieve(ctx)
	return err
}

func (p *Provider) checkError(service string, err error) *CheckError {
	failure := ServiceFault
	code := errorCode(err)
	switch {
	case code == "ResourceNotFoundException":
		failure = ClusterNotFound
	case slices.Contains(credentialCodes, code):
		failure = CredentialsRefused
	case slices.Contains(permissionCodes, code):
		failure = NotPermitted
	case code == "":
		failure = Unreachable
	}
	return &CheckError{Failure: failure, Endpoint: p.endpoints[service], Cluster: p.opts.ClusterName, Err: err}
}
