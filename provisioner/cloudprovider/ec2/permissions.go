// SPDX-License-Identifier: Apache-2.0

package ec2

// Permission is an IAM action that this package needs.
type Permission struct {
	// Action as IAM names it.
	Action string
	// Why in a few words, for the policy's documentation.
	Why string
}

// Permissions are all actions of this package's calls, and those that AWS checks because of what the calls carry.
// All but sts:DecodeAuthorizationMessage, which may be left out, are a part of what Karpenter's own policy grants, so
// that a cluster's existing role works as it is.
var Permissions = []Permission{
	{"ec2:CreateFleet", "launch"},
	{"ec2:RunInstances", "checked by CreateFleet"},
	{"ec2:CreateLaunchTemplate", "launch"},
	{"ec2:CreateTags", "tags at launch, name and claim of an instance later"},
	{"ec2:DeleteLaunchTemplate", "templates that no launch uses any more"},
	{"ec2:DescribeImages", "amiSelectorTerms"},
	{"ec2:DescribeInstanceTypeOfferings", "zones of the instance types"},
	{"ec2:DescribeInstanceTypes", "instance types; readiness"},
	{"ec2:DescribeInstances", "state of the machines"},
	{"ec2:DescribeLaunchTemplates", "templates that no launch uses any more"},
	{"ec2:DescribeSecurityGroups", "securityGroupSelectorTerms"},
	{"ec2:DescribeSpotPriceHistory", "spot prices"},
	{"ec2:DescribeSubnets", "subnetSelectorTerms"},
	{"ec2:TerminateInstances", "end of a machine"},
	{"eks:DescribeCluster", "endpoint, CA, version and service CIDR; readiness"},
	{"iam:AddRoleToInstanceProfile", "spec.role"},
	{"iam:CreateInstanceProfile", "spec.role"},
	{"iam:DeleteInstanceProfile", "end of a class with spec.role"},
	{"iam:GetInstanceProfile", "spec.role"},
	{"iam:ListInstanceProfiles", "end of a class with spec.role"},
	{"iam:PassRole", "checked by AddRoleToInstanceProfile and by a launch"},
	{"iam:RemoveRoleFromInstanceProfile", "end of a class with spec.role"},
	{"iam:TagInstanceProfile", "checked by CreateInstanceProfile"},
	{"pricing:GetProducts", "on-demand prices"},
	{"ssm:GetParameter", "amiSelectorTerms with an alias or a parameter"},
	{"sts:DecodeAuthorizationMessage", "which permission is missing, where EC2 encodes it; optional"},
}
