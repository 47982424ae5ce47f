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

	// insufficientCodes: an offering has no machine now, others may.
	insufficientCodes = []string{
		"InsufficientInstanceCapacity", "UnfulfillableCapacity", "Unsupported", "SpotMaxPriceTooLow",
		"InsufficientFreeAddressesInSubnet", "MaxFleetCountExceeded", "ReservationCapacityExceeded",
		"InvalidCapacityReservationState.Unavailable", "VcpuLimitExceeded", "MaxSpotInstanceCountExceeded", spotRoleCode,
	}
	// quotaCodes: the account's quota of a group of instance families and a capacity type is used up.
	quotaCodes = []string{"VcpuLimitExceeded", "MaxSpotInstanceCountExceeded"}
	// transientCodes: AWS did not act on the request, or does not say whether it did.
	transientCodes = []string{
		"RequestLimitExceeded", "Throttling", "ThrottlingException", "ThrottledException", "RequestThrottled", "RequestThrottledException",
		"TooManyRequestsException", "EC2ThrottledException", "BandwidthLimitExceeded", "SlowDown",
		"InternalError", "InternalFailure", "InternalServerError", "ServerInternal", "Unavailable", "ServiceUnavailable", "RequestTimeout", "RequestTimeoutException",
	}
	credentialCodes = []string{
		"AuthFailure", "ExpiredToken", "ExpiredTokenException", "InvalidClientTokenId", "UnrecognizedClientException", "InvalidSignatureException",
		"SignatureDoesNotMatch", "RequestExpired", "IncompleteSignature", "MissingAuthenticationToken", "MissingAuthenticationTokenException", "OptInRequired",
	}
	permissionCodes = []string{"UnauthorizedOperation", "AccessDenied", "AccessDeniedException", "Client.UnauthorizedOperation"}
	// classCodes: what the class selects or sets is wrong, or not visible to EC2 yet.
	classCodes = []string{
		"InvalidAMIID.NotFound", "InvalidAMIID.Malformed", "InvalidAMIID.Unavailable", "InvalidSubnetID.NotFound", "InvalidGroup.NotFound",
		"InvalidSecurityGroupID.NotFound", "InvalidUserData.Malformed", "InvalidKeyPair.NotFound", "InvalidSnapshot.NotFound", "PendingVerification",
	}
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

// failureOf says what an error code of a launch means, whether of the whole call or of one pool.
func failureOf(code, message string) cloudprovider.LaunchFailure {
	aboutClass := aboutProfile(message) || strings.Contains(message, vpcMismatchText)
	switch {
	case code == "", slices.Contains(transientCodes, code):
		return cloudprovider.Unknown
	case code == tokenMismatchCode:
		return cloudprovider.TokenMismatch
	case slices.Contains(insufficientCodes, code):
		return cloudprovider.InsufficientCapacity
	case slices.Contains(classCodes, code), slices.Contains(permissionCodes, code), aboutClass:
		return cloudprovider.NodeClassNotReady
	case slices.Contains(credentialCodes, code), slices.Contains(templateNotFoundCodes, code):
		return cloudprovider.Unknown // refused before anything was done; the same request may pass later
	}
	return cloudprovider.Rejected
}

func aboutProfile(message string) bool {
	return strings.Contains(message, profileInvalidText) || strings.Contains(message, profileInvalidText2)
}

// launchError gives a failed call of a launch its kind.
func launchError(err error) *cloudprovider.LaunchError {
	code, message := "", ""
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		code, message = api.ErrorCode(), api.ErrorMessage()
	}
	return &cloudprovider.LaunchError{Failure: failureOf(code, message), Code: code, Err: err}
}
