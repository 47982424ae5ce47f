// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"errors"
	"slices"
	"strings"

	"github.com/aws/smithy-go"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
)

// The sets of AWS error codes that something is decided by. No code is compared anywhere else.
var (
	instanceNotFoundCodes = []string{"InvalidInstanceID.NotFound", "InvalidInstanceID.Malformed"}
	templateNotFoundCodes = []string{"InvalidLaunchTemplateName.NotFoundException", "InvalidLaunchTemplateId.NotFound", "InvalidLaunchTemplateId.NotFoundException"}
	templateExistsCodes   = []string{"InvalidLaunchTemplateName.AlreadyExistsException"}

	profileNotFoundCodes   = []string{"NoSuchEntity", "NoSuchEntityException"}
	profileExistsCodes     = []string{"EntityAlreadyExists", "EntityAlreadyExistsException"}
	roleLimitCodes         = []string{"LimitExceeded", "LimitExceededException"}
	parameterNotFoundCodes = []string{"ParameterNotFound"}

	// throttleCodes: AWS did not act on the request.
	throttleCodes = []string{
		"RequestLimitExceeded", "Throttling", "ThrottlingException", "ThrottledException", "RequestThrottled", "RequestThrottledException",
		"TooManyRequestsException", "EC2ThrottledException", "BandwidthLimitExceeded", "SlowDown", "ProvisionedThroughputExceededException",
		"PriorRequestNotComplete", "TransactionInProgressException",
	}
	// transientCodes: AWS does not say whether it acted on the request.
	transientCodes = []string{
		"InternalError", "InternalFailure", "InternalServerError", "InternalServerException", "ServerInternal", "Unavailable", "ServiceUnavailable",
		"ServiceUnavailableException", "RequestTimeout", "RequestTimeoutException", "ServerException",
	}
	credentialCodes = []string{
		"AuthFailure", "ExpiredToken", "ExpiredTokenException", "InvalidClientTokenId", "UnrecognizedClientException", "InvalidSignatureException",
		"SignatureDoesNotMatch", "RequestExpired", "IncompleteSignature", "MissingAuthenticationToken", "MissingAuthenticationTokenException", "OptInRequired",
	}
	permissionCodes = []string{"UnauthorizedOperation", "AccessDenied", "AccessDeniedException", "Client.UnauthorizedOperation"}
)

const (
	tokenMismatchCode   = "IdempotentParameterMismatch"
	freeAddressesCode   = "InsufficientFreeAddressesInSubnet"
	spotRoleCode        = "AuthFailure.ServiceLinkedRoleCreationNotPermitted"
	profileInvalidText  = "iamInstanceProfile"
	profileInvalidText2 = "Invalid IAM Instance Profile"
	vpcMismatchText     = "belong to different networks"
)

// errorCode is AWS's error code, empty if err is not an answer of AWS.
func errorCode(err error) string {
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return api.ErrorCode()
	}
	return ""
}

func hasCode(err error, codes []string) bool {
	return err != nil && slices.Contains(codes, errorCode(err))
}

func aboutProfile(message string) bool {
	return strings.Contains(message, profileInvalidText) || strings.Contains(message, profileInvalidText2)
}

// launchError gives a failed call of a launch its kind. doubtful: the request was sent before, and its answer is not
// known; then a refusal to look at it proves nothing.
func launchError(err error, doubtful bool) *cloudprovider.LaunchError {
	code, message := "", ""
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		code, message = api.ErrorCode(), api.ErrorMessage()
	}
	m := moodOf(code, message)
	if errors.Is(err, errNotSent) {
		m = mood{meaning: meansThrottle, reason: reasonThrottled}
	}
	failure := &cloudprovider.LaunchError{Failure: m.failure(), Code: code, Reason: m.reason, Err: &said{describe(err), err}}
	if doubtful && failure.Failure == cloudprovider.Throttled {
		failure.Failure = cloudprovider.Unknown
	}
	return failure
}

// said is an error in the words that people are shown.
type said struct {
	text string
	err  error
}

func (e *said) Error() string { return e.text }
func (e *said) Unwrap() error { return e.err }
