// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"slices"
	"strings"
	"time"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
)

// meaning is what an error of AWS is about. It decides what happens next.
type meaning string

const (
	meansCapacity      meaning = "capacity"      // no machine there now, others may have one
	meansQuota         meaning = "quota"         // the account may have no more of it
	meansPermission    meaning = "permission"    // somebody must grant something
	meansCredentials   meaning = "credentials"   // refused before anything was looked at
	meansConfiguration meaning = "configuration" // what the class selects or sets is wrong, or not visible yet
	meansThrottle      meaning = "throttle"      // not acted on: slower
	meansTransient     meaning = "transient"     // AWS's own fault, or no answer: nothing is known
	meansMismatch      meaning = "mismatch"      // the token was used with other parameters
	meansNoTemplate    meaning = "no template"   // not acted on: the launch template is not there
	meansRejected      meaning = "rejected"      // the request is wrong as such
)

// scope is how much of the cloud an error rules out.
type scope string

const (
	scopeNone         scope = ""
	scopePool         scope = "pool"          // instance type, zone and capacity type
	scopeTypeInZone   scope = "type in zone"  // whatever the capacity type
	scopeZone         scope = "zone"          // every type
	scopeSubnet       scope = "subnet"        // a zone, once all of the class's subnets there are out
	scopeCapacityType scope = "capacity type" // of the error, everywhere
	scopeQuota        scope = "quota"         // types of the quota's group, of the capacity type, as large as the refused one
	scopeReservation  scope = "reservation"
	scopeAccount      scope = "account" // everything
)

// How long a refusal is believed. Capacity comes back in silence, so nothing is believed for ever.
const (
	capacityFor    = 3 * time.Minute // Karpenter's
	addressesFor   = time.Minute     // free addresses are counted again by then
	quotaFor       = 5 * time.Minute // ends with machines of ours, or with a ticket
	accountFor     = time.Minute
	permissionFor  = 5 * time.Minute // spot's service-linked role
	unsupportedFor = 30 * time.Minute
)

// mood is everything that an error code and message of AWS say.
type mood struct {
	meaning meaning
	scope   scope
	// ttl is how long what is in scope is believed to be out.
	ttl time.Duration
	// reason is Karpenter's condition reason.
	reason string
}

// failure is the kind of a launch that ended with the mood.
func (m mood) failure() cloudprovider.LaunchFailure {
	switch m.meaning {
	case meansCapacity, meansQuota:
		return cloudprovider.InsufficientCapacity
	case meansPermission:
		if m.scope != scopeNone {
			return cloudprovider.InsufficientCapacity // the rest of the cloud may be used
		}
		return cloudprovider.NodeClassNotReady
	case meansConfiguration:
		return cloudprovider.NodeClassNotReady
	case meansThrottle:
		return cloudprovider.Throttled
	case meansMismatch:
		return cloudprovider.TokenMismatch
	case meansRejected:
		return cloudprovider.Rejected
	case meansCredentials, meansNoTemplate, meansTransient:
	}
	return cloudprovider.Unknown
}

// passing says that the error is nobody's but the moment's: it says nothing about the offering.
func (m mood) passing() bool {
	switch m.meaning {
	case meansThrottle, meansTransient, meansCredentials, meansNoTemplate:
		return true
	case meansCapacity, meansQuota, meansPermission, meansConfiguration, meansMismatch, meansRejected:
	}
	return false
}

// out is a mood that rules something out for a while.
func out(what scope, ttl time.Duration, reason string) mood {
	return mood{meansCapacity, what, ttl, reason}
}

func quota(what scope, ttl time.Duration, reason string) mood {
	return mood{meansQuota, what, ttl, reason}
}

const (
	reasonCapacity     = "InsufficientCapacity"
	reasonUnauthorized = "Unauthorized"
	reasonThrottled    = "RequestLimitExceeded"
	reasonLaunchFailed = "LaunchFailed"
)

// moods by error code. Codes that need more than themselves are in moodOf.
var moods = func() map[string]mood {
	table := map[string]mood{
		"InsufficientInstanceCapacity":         out(scopePool, capacityFor, reasonCapacity),
		"UnfulfillableCapacity":                out(scopePool, capacityFor, reasonCapacity),
		"InsufficientCapacity":                 out(scopePool, capacityFor, reasonCapacity),
		"InsufficientHostCapacity":             out(scopePool, capacityFor, reasonCapacity),
		"InsufficientReservedInstanceCapacity": out(scopePool, capacityFor, reasonCapacity),
		"SpotMaxPriceTooLow":                   out(scopePool, capacityFor, "SpotMaxPriceTooLow"),
		"Unsupported":                          out(scopePool, unsupportedFor, "Unsupported"),
		"UnsupportedOperation":                 out(scopePool, unsupportedFor, "Unsupported"),
		"InsufficientVolumeCapacity":           out(scopeZone, capacityFor, reasonCapacity),
		"VolumeTypeNotAvailableInZone":         out(scopeZone, unsupportedFor, "Unsupported"),
		freeAddressesCode:                      out(scopeSubnet, addressesFor, "InsufficientFreeAddressesInSubnet"),

		"ReservationCapacityExceeded":                 out(scopeReservation, addressesFor, "ReservationCapacityExceeded"),
		"InvalidCapacityReservationState.Unavailable": out(scopeReservation, capacityFor, reasonCapacity),
		"InvalidCapacityReservationId.NotFound":       out(scopeReservation, capacityFor, reasonCapacity),
		"CapacityReservationNotFound":                 out(scopeReservation, capacityFor, reasonCapacity),

		"VcpuLimitExceeded":             quota(scopeQuota, quotaFor, "VCPULimitExceeded"),
		"InstanceLimitExceeded":         quota(scopeQuota, quotaFor, "VCPULimitExceeded"),
		"MaxSpotInstanceCountExceeded":  quota(scopeCapacityType, quotaFor, "SpotQuotaExceeded"),
		"MaxFleetCountExceeded":         quota(scopeAccount, accountFor, "FleetQuotaExceeded"),
		"VolumeLimitExceeded":           quota(scopeAccount, quotaFor, "VolumeQuotaExceeded"),
		"MaxIOPSLimitExceeded":          quota(scopeAccount, quotaFor, "VolumeQuotaExceeded"),
		"NetworkInterfaceLimitExceeded": quota(scopeAccount, quotaFor, "NetworkInterfaceQuotaExceeded"),

		spotRoleCode:      {meansPermission, scopeCapacityType, permissionFor, "SpotSLRCreationFailed"},
		tokenMismatchCode: {meaning: meansMismatch, reason: reasonLaunchFailed},

		"InvalidAMIID.NotFound":           {meaning: meansConfiguration, reason: "AMINotFound"},
		"InvalidAMIID.Malformed":          {meaning: meansConfiguration, reason: "InvalidAMIID"},
		"InvalidAMIID.Unavailable":        {meaning: meansConfiguration, reason: "AMINotFound"},
		"InvalidSubnetID.NotFound":        {meaning: meansConfiguration, reason: "SubnetNotFound"},
		"InvalidGroup.NotFound":           {meaning: meansConfiguration, reason: "SecurityGroupNotFound"},
		"InvalidSecurityGroupID.NotFound": {meaning: meansConfiguration, reason: "SecurityGroupNotFound"},
		"InvalidUserData.Malformed":       {meaning: meansConfiguration, reason: reasonLaunchFailed},
		"InvalidKeyPair.NotFound":         {meaning: meansConfiguration, reason: reasonLaunchFailed},
		"InvalidSnapshot.NotFound":        {meaning: meansConfiguration, reason: reasonLaunchFailed},
		"PendingVerification":             {meaning: meansConfiguration, reason: "AccountPendingVerification"},
	}
	each := func(codes []string, m mood) {
		for _, code := range codes {
			table[code] = m
		}
	}
	each(throttleCodes, mood{meaning: meansThrottle, reason: reasonThrottled})
	each(transientCodes, mood{meaning: meansTransient, reason: "InternalError"})
	each(credentialCodes, mood{meaning: meansCredentials, reason: reasonUnauthorized})
	each(permissionCodes, mood{meaning: meansPermission, reason: reasonUnauthorized})
	each(templateNotFoundCodes, mood{meaning: meansNoTemplate, reason: "LaunchTemplateNotFound"})
	return table
}()

// moodOf says what an error means, whether of a whole call or of one pool of a fleet. It is the only place that knows.
// An empty code is no answer at all.
func moodOf(code, message string) mood {
	m, known := moods[code]
	has := func(text string) bool { return strings.Contains(message, text) }
	switch {
	case code == "":
		return mood{meaning: meansTransient, reason: reasonLaunchFailed}
	case m.meaning == meansPermission && m.scope == scopeNone && has("Not authorized for images"), code == "AuthFailure" && has("Not authorized for images"):
		return mood{meaning: meansConfiguration, reason: "AMIAuthorizationFailure"}
	case has(profileInvalidText), has(profileInvalidText2):
		return mood{meaning: meansConfiguration, reason: "InstanceProfileNameInvalid"}
	case has(vpcMismatchText):
		return mood{meaning: meansConfiguration, reason: "SecurityGroupSubnetVPCMismatch"}
	case has("User data is limited to"):
		return mood{meaning: meansConfiguration, reason: "UserDataSizeLimitExceeded"}
	case has("not eligible for Free Tier"):
		return mood{meaning: meansConfiguration, reason: "FreeTierIneligible"}
	case m.reason == "Unsupported" && m.scope == scopePool && has("Availability Zone"):
		m.scope = scopeTypeInZone
	case code == "InternalError":
		m.reason = code
	case !known && strings.HasPrefix(code, "Insufficient") && strings.HasSuffix(code, "Capacity"):
		return out(scopePool, capacityFor, reasonCapacity)
	case !known && strings.HasSuffix(code, "LimitExceeded"), !known && strings.HasSuffix(code, "QuotaExceeded"):
		return quota(scopePool, capacityFor, code)
	case !known && slices.ContainsFunc([]string{"UnauthorizedOperation", "AccessDenied"}, func(part string) bool { return strings.Contains(code, part) }):
		return mood{meaning: meansPermission, reason: reasonUnauthorized}
	case !known:
		return mood{meaning: meansRejected, reason: reasonLaunchFailed}
	}
	return m
}
