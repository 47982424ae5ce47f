// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/aws/smithy-go"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
)

func TestFailureOf(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		code, message string
		want          cloudprovider.LaunchFailure
	}{
		"capacity":           {code: "InsufficientInstanceCapacity", want: cloudprovider.InsufficientCapacity},
		"unsupported":        {code: "Unsupported", want: cloudprovider.InsufficientCapacity},
		"quota":              {code: "VcpuLimitExceeded", want: cloudprovider.InsufficientCapacity},
		"spot role":          {code: "AuthFailure.ServiceLinkedRoleCreationNotPermitted", want: cloudprovider.InsufficientCapacity},
		"throttled":          {code: "RequestLimitExceeded", want: cloudprovider.Unknown},
		"internal":           {code: "InternalError", want: cloudprovider.Unknown},
		"expired":            {code: "ExpiredToken", want: cloudprovider.Unknown},
		"template":           {code: "InvalidLaunchTemplateName.NotFoundException", want: cloudprovider.Unknown},
		"token":              {code: "IdempotentParameterMismatch", want: cloudprovider.TokenMismatch},
		"permission":         {code: "UnauthorizedOperation", want: cloudprovider.NodeClassNotReady},
		"image":              {code: "InvalidAMIID.NotFound", want: cloudprovider.NodeClassNotReady},
		"profile":            {code: "InvalidParameterValue", message: "Value (x) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name", want: cloudprovider.NodeClassNotReady},
		"networks":           {code: "InvalidParameter", message: "Security group sg-1 and subnet subnet-1 belong to different networks.", want: cloudprovider.NodeClassNotReady},
		"bad parameter":      {code: "InvalidParameterValue", message: "TotalTargetCapacity", want: cloudprovider.Rejected},
		"never heard of it":  {code: "SomethingNew", want: cloudprovider.Rejected},
		"no answer from AWS": {want: cloudprovider.Unknown},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := fmt.Errorf("launching: %w", &smithy.GenericAPIError{Code: c.code, Message: c.message})
			if c.code == "" {
				err = context.DeadlineExceeded
			}
			got := launchError(err)
			if got.Failure != c.want || got.Code != c.code || !errors.Is(got, err) {
				t.Errorf("launchError(%v) = %+v, want %s", err, got, c.want)
			}
		})
	}
}
