// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/aws/smithy-go"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
)

// moodCases has every error class of AWS that a launch meets: what it means, what it rules out, for how long, and what
// becomes of the launch.
var moodCases = map[string]struct {
	code, message string
	meaning       meaning
	scope         scope
	ttl           time.Duration
	reason        string
	failure       cloudprovider.LaunchFailure
	passing       bool
}{
	"no capacity":           {"InsufficientInstanceCapacity", "We currently do not have sufficient m5.large capacity in the Availability Zone you requested", meansCapacity, scopePool, 3 * time.Minute, "InsufficientCapacity", cloudprovider.InsufficientCapacity, false},
	"unfulfillable":         {"UnfulfillableCapacity", "Unable to fulfill capacity due to your request configuration.", meansCapacity, scopePool, 3 * time.Minute, "InsufficientCapacity", cloudprovider.InsufficientCapacity, false},
	"dear spot":             {"SpotMaxPriceTooLow", "", meansCapacity, scopePool, 3 * time.Minute, "SpotMaxPriceTooLow", cloudprovider.InsufficientCapacity, false},
	"a new kind of no":      {"InsufficientQuantumCapacity", "", meansCapacity, scopePool, 3 * time.Minute, "InsufficientCapacity", cloudprovider.InsufficientCapacity, false},
	"not in the zone":       {"Unsupported", "Your requested instance type (m8g.large) is not supported in your requested Availability Zone (us-east-1e).", meansCapacity, scopeTypeInZone, 30 * time.Minute, "Unsupported", cloudprovider.InsufficientCapacity, false},
	"configuration not had": {"Unsupported", "The requested configuration is currently not supported.", meansCapacity, scopePool, 30 * time.Minute, "Unsupported", cloudprovider.InsufficientCapacity, false},
	"no disks in the zone":  {"InsufficientVolumeCapacity", "", meansCapacity, scopeZone, 3 * time.Minute, "InsufficientCapacity", cloudprovider.InsufficientCapacity, false},
	"disk type not in zone": {"VolumeTypeNotAvailableInZone", "", meansCapacity, scopeZone, 30 * time.Minute, "Unsupported", cloudprovider.InsufficientCapacity, false},
	"full subnet":           {"InsufficientFreeAddressesInSubnet", "There are not enough free addresses in subnet 'subnet-1'", meansCapacity, scopeSubnet, time.Minute, "InsufficientFreeAddressesInSubnet", cloudprovider.InsufficientCapacity, false},
	"used-up reservation":   {"ReservationCapacityExceeded", "", meansCapacity, scopeReservation, time.Minute, "ReservationCapacityExceeded", cloudprovider.InsufficientCapacity, false},
	"ended reservation":     {"InvalidCapacityReservationState.Unavailable", "", meansCapacity, scopeReservation, 3 * time.Minute, "InsufficientCapacity", cloudprovider.InsufficientCapacity, false},

	"vCPU quota":     {"VcpuLimitExceeded", "You have requested more vCPU capacity than your current vCPU limit of 32 allows", meansQuota, scopeQuota, 5 * time.Minute, "VCPULimitExceeded", cloudprovider.InsufficientCapacity, false},
	"spot quota":     {"MaxSpotInstanceCountExceeded", "Max spot instance count exceeded", meansQuota, scopeCapacityType, 5 * time.Minute, "SpotQuotaExceeded", cloudprovider.InsufficientCapacity, false},
	"fleets":         {"MaxFleetCountExceeded", "", meansQuota, scopeAccount, time.Minute, "FleetQuotaExceeded", cloudprovider.InsufficientCapacity, false},
	"volumes":        {"VolumeLimitExceeded", "", meansQuota, scopeAccount, 5 * time.Minute, "VolumeQuotaExceeded", cloudprovider.InsufficientCapacity, false},
	"another quota":  {"WidgetLimitExceeded", "", meansQuota, scopePool, 3 * time.Minute, "WidgetLimitExceeded", cloudprovider.InsufficientCapacity, false},
	"spot role":      {"AuthFailure.ServiceLinkedRoleCreationNotPermitted", "The provided credentials do not have permission to create the service-linked role for EC2 Spot Instances.", meansPermission, scopeCapacityType, 5 * time.Minute, "SpotSLRCreationFailed", cloudprovider.InsufficientCapacity, false},
	"permission":     {"UnauthorizedOperation", "You are not authorized to perform this operation.", meansPermission, scopeNone, 0, "Unauthorized", cloudprovider.NodeClassNotReady, false},
	"IAM permission": {"AccessDenied", "", meansPermission, scopeNone, 0, "Unauthorized", cloudprovider.NodeClassNotReady, false},
	"their image":    {"AuthFailure", "Not authorized for images: [ami-1]", meansConfiguration, scopeNone, 0, "AMIAuthorizationFailure", cloudprovider.NodeClassNotReady, false},
	"credentials":    {"AuthFailure", "AWS was not able to validate the provided access credentials", meansCredentials, scopeNone, 0, "Unauthorized", cloudprovider.Unknown, true},
	"expired":        {"ExpiredToken", "", meansCredentials, scopeNone, 0, "Unauthorized", cloudprovider.Unknown, true},

	"image":        {"InvalidAMIID.NotFound", "", meansConfiguration, scopeNone, 0, "AMINotFound", cloudprovider.NodeClassNotReady, false},
	"image id":     {"InvalidAMIID.Malformed", "", meansConfiguration, scopeNone, 0, "InvalidAMIID", cloudprovider.NodeClassNotReady, false},
	"profile":      {"InvalidParameterValue", "Value (x) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name", meansConfiguration, scopeNone, 0, "InstanceProfileNameInvalid", cloudprovider.NodeClassNotReady, false},
	"networks":     {"InvalidParameter", "Security group sg-1 and subnet subnet-1 belong to different networks.", meansConfiguration, scopeNone, 0, "SecurityGroupSubnetVPCMismatch", cloudprovider.NodeClassNotReady, false},
	"user data":    {"InvalidUserData.Malformed", "User data is limited to 16384 bytes", meansConfiguration, scopeNone, 0, "UserDataSizeLimitExceeded", cloudprovider.NodeClassNotReady, false},
	"free tier":    {"InvalidParameterCombination", "The specified instance type is not eligible for Free Tier.", meansConfiguration, scopeNone, 0, "FreeTierIneligible", cloudprovider.NodeClassNotReady, false},
	"verification": {"PendingVerification", "", meansConfiguration, scopeNone, 0, "AccountPendingVerification", cloudprovider.NodeClassNotReady, false},

	"throttled":          {"RequestLimitExceeded", "Request limit exceeded.", meansThrottle, scopeNone, 0, "RequestLimitExceeded", cloudprovider.Throttled, true},
	"throttled elsehow":  {"ThrottlingException", "", meansThrottle, scopeNone, 0, "RequestLimitExceeded", cloudprovider.Throttled, true},
	"internal":           {"InternalError", "", meansTransient, scopeNone, 0, "InternalError", cloudprovider.Unknown, true},
	"unavailable":        {"Unavailable", "", meansTransient, scopeNone, 0, "InternalError", cloudprovider.Unknown, true},
	"no answer":          {"", "", meansTransient, scopeNone, 0, "LaunchFailed", cloudprovider.Unknown, true},
	"template":           {"InvalidLaunchTemplateName.NotFoundException", "", meansNoTemplate, scopeNone, 0, "LaunchTemplateNotFound", cloudprovider.Unknown, true},
	"token":              {"IdempotentParameterMismatch", "", meansMismatch, scopeNone, 0, "LaunchFailed", cloudprovider.TokenMismatch, false},
	"bad parameter":      {"InvalidParameterValue", "TotalTargetCapacity", meansRejected, scopeNone, 0, "LaunchFailed", cloudprovider.Rejected, false},
	"never heard of it":  {"SomethingNew", "", meansRejected, scopeNone, 0, "LaunchFailed", cloudprovider.Rejected, false},
	"spot tag elsewhere": {"InvalidTagKey.Malformed", "", meansRejected, scopeNone, 0, "LaunchFailed", cloudprovider.Rejected, false},
}

func TestMoodOf(t *testing.T) {
	t.Parallel()
	for name, c := range moodCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := moodOf(c.code, c.message)
			if want := (mood{c.meaning, c.scope, c.ttl, c.reason}); got != want {
				t.Errorf("moodOf(%q) = %+v, want %+v", c.code, got, want)
			}
			if got.failure() != c.failure || got.passing() != c.passing {
				t.Errorf("moodOf(%q): failure %s, passing %v, want %s, %v", c.code, got.failure(), got.passing(), c.failure, c.passing)
			}
		})
	}
}

// Every code of the tables has a reason and, if it rules something out, an end.
func TestMoodsAreComplete(t *testing.T) {
	t.Parallel()
	for code, m := range moods {
		if m.reason == "" || m.meaning == "" || (m.scope != scopeNone) != (m.ttl > 0) {
			t.Errorf("%s: %+v", code, m)
		}
		if m.passing() && m.scope != scopeNone {
			t.Errorf("%s passes but rules out %s", code, m.scope)
		}
	}
}

func TestLaunchError(t *testing.T) {
	t.Parallel()
	api := func(code string) error {
		return fmt.Errorf("launching: %w", &smithy.GenericAPIError{Code: code, Message: "why"})
	}
	cases := map[string]struct {
		err      error
		doubtful bool
		want     cloudprovider.LaunchFailure
	}{
		"no answer":                        {context.DeadlineExceeded, false, cloudprovider.Unknown},
		"throttled":                        {api("RequestLimitExceeded"), false, cloudprovider.Throttled},
		"throttled after a lost answer":    {api("RequestLimitExceeded"), true, cloudprovider.Unknown},
		"never sent":                       {errors.Join(errNotSent, context.DeadlineExceeded), false, cloudprovider.Throttled},
		"not sent again, lost before":      {errors.Join(errNotSent, context.DeadlineExceeded), true, cloudprovider.Unknown},
		"no capacity after a lost answer":  {api("InsufficientInstanceCapacity"), true, cloudprovider.InsufficientCapacity},
		"permission missing, lost before ": {api("UnauthorizedOperation"), true, cloudprovider.NodeClassNotReady},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := launchError(c.err, c.doubtful)
			if got.Failure != c.want || !errors.Is(got, c.err) || got.Reason == "" {
				t.Errorf("launchError(%v) = %+v, want %s", c.err, got, c.want)
			}
		})
	}
}

// FuzzErrors: whatever AWS says, it is understood as something, without a panic, and no secret part is shown.
func FuzzErrors(f *testing.F) {
	for _, c := range moodCases {
		f.Add(c.code, c.message, "")
	}
	f.Add("UnauthorizedOperation", "User: a is not authorized to perform: ec2:RunInstances on resource: b because no identity-based policy allows it. "+encodedMark+" AbC-_9", `{"explicitDeny":true,"context":{"action":"ec2:RunInstances","resource":"*"}}`)
	f.Add("UnauthorizedOperation", encodedMark, `{"context":[]}`)
	f.Add("AccessDenied", "User: \x00 is not authorized to perform: : on resource:  ", `{"context":{"action":"a\nb"}}`)
	f.Fuzz(func(t *testing.T, code, message, decoded string) {
		m := moodOf(code, message)
		if m.failure() == "" || m.reason == "" || (m.scope != scopeNone) != (m.ttl > 0) {
			t.Errorf("moodOf(%q, %q) = %+v", code, message, m)
		}
		d := parseDenial(message).decoded(decoded)
		s := d.sentence("ec2:CreateFleet", message)
		if !strings.HasPrefix(s, "not authorized to call ec2:CreateFleet") {
			t.Errorf("sentence: %q", s)
		}
		if utf8.ValidString(message) && !utf8.ValidString(s) {
			t.Errorf("sentence of a valid text is not: %q", s)
		}
		if len(d.encoded) > 20 && strings.Contains(s, d.encoded) && strings.Count(message, d.encoded) == 1 {
			t.Errorf("the encoded part is shown: %q", s)
		}
	})
}
