// SPDX-License-Identifier: Apache-2.0

package e2e

import "time"

// onDemandOrSpot is for pools that try spot capacity first.
var onDemandOrSpot = []string{"spot", "on-demand"}

// faultRows are the faults of the matrix in the order in which they are printed.
var faultRows = []faultRow{
	// Pools of capacity.
	{
		name: "ice-type", fault: "no capacity of the cheapest type", types: []string{"c5.large", "m5.large"},
		rule: map[string]any{"action": "CreateFleet", "perPool": true, "instanceType": "c5.large", "code": "InsufficientInstanceCapacity"},
	},
	{
		name: "ice-spot", fault: "no spot capacity anywhere", types: []string{"c5a.large", "m5a.large"}, capacity: onDemandOrSpot,
		rule: map[string]any{"action": "CreateFleet", "perPool": true, "capacityType": "spot", "code": "InsufficientInstanceCapacity"},
	},
	{
		name: "ice-all", fault: "no capacity of any type of the pool", types: []string{"c6i.large", "m6i.large"},
		rule:  map[string]any{"action": "CreateFleet", "perPool": true, "code": "InsufficientInstanceCapacity"},
		saw:   []string{"InsufficientInstanceCapacity"},
		fix:   allow(func(r *faultRow) { r.types = append(r.types, "m6a.large") }),
		fixed: "another type allowed",
	},
	{
		name: "unfulfillable", fault: "UnfulfillableCapacity of the cheapest type", types: []string{"c7i.large", "m7i.large"},
		rule: map[string]any{"action": "CreateFleet", "perPool": true, "instanceType": "c7i.large", "code": "UnfulfillableCapacity"},
	},
	{
		name: "unsupported", fault: "the cheapest type is Unsupported", types: []string{"c7a.large", "m7a.large"},
		rule: map[string]any{"action": "CreateFleet", "perPool": true, "instanceType": "c7a.large", "code": "Unsupported"},
	},
	{
		name: "subnet-full", fault: "no free address in the zone's subnet", types: []string{"c5d.large"}, zones: []string{"us-east-1c"},
		rule:  map[string]any{"action": "CreateFleet", "perPool": true, "zone": "us-east-1c", "code": "InsufficientFreeAddressesInSubnet"},
		saw:   []string{"InsufficientFreeAddressesInSubnet"},
		fix:   allow(func(r *faultRow) { r.zones = []string{"us-east-1a", "us-east-1c"} }),
		fixed: "another zone allowed",
	},
	{
		name: "quota-od", fault: "vCPU quota of on-demand reached", types: []string{"x2iedn.xlarge"},
		rule:  map[string]any{"action": "CreateFleet", "perPool": true, "code": "VcpuLimitExceeded"},
		saw:   []string{"VcpuLimitExceeded"},
		fix:   allow(func(r *faultRow) { r.capacity = onDemandOrSpot }),
		fixed: "spot allowed",
	},
	{
		name: "quota-spot", fault: "spot quota reached", types: []string{"inf2.xlarge"}, capacity: onDemandOrSpot, phase: 1,
		rule: map[string]any{"action": "CreateFleet", "perPool": true, "capacityType": "spot", "code": "MaxSpotInstanceCountExceeded"},
	},
	{
		name: "no-spot-role", fault: "spot without its service-linked role", types: []string{"c6a.large"}, capacity: onDemandOrSpot, phase: 2,
		rule: map[string]any{"action": "CreateFleet", "perPool": true, "capacityType": "spot", "code": "AuthFailure.ServiceLinkedRoleCreationNotPermitted"},
	},

	// Calls.
	{
		name: "throttled", fault: "CreateFleet is throttled 4 times", types: []string{"c6id.large"},
		rule: map[string]any{"action": "CreateFleet", "code": "RequestLimitExceeded", "times": 4},
	},
	{
		name: "internal", fault: "CreateFleet fails with 500, after launching", types: []string{"m6id.large"},
		rule: map[string]any{"action": "CreateFleet", "failAfter": true, "code": "InternalError", "times": 1},
	},
	{
		name: "reset", fault: "CreateFleet's connection is reset 3 times", types: []string{"c5n.large"},
		rule: map[string]any{"action": "CreateFleet", "dropRequest": true, "times": 3},
	},
	{
		name: "delayed", fault: "CreateFleet takes 10 s", types: []string{"m5n.large"},
		rule: map[string]any{"action": "CreateFleet", "delay": "10s", "times": 1},
	},
	{
		name: "unauthorized", fault: "CreateFleet is not allowed", types: []string{"c6in.large"}, class: []change{},
		rule: map[string]any{"action": "CreateFleet", "code": "UnauthorizedOperation"},
		saw:  []string{"ec2:CreateFleet", "missing permission"}, fix: untilCleared, fixed: "permission given",
	},
	{
		name: "boundary", fault: "a permissions boundary forbids CreateLaunchTemplate", types: []string{"r5.large"}, class: []change{},
		rule: map[string]any{
			"action": "CreateLaunchTemplate", "code": "UnauthorizedOperation",
			"message": "You are not authorized to perform this operation. User: arn:aws:iam::111122223333:user/fake is not authorized to perform: ec2:CreateLaunchTemplate because no permissions boundary allows the ec2:CreateLaunchTemplate action",
		},
		saw: []string{"ec2:CreateLaunchTemplate", "permissions boundary"}, fix: untilCleared, fixed: "permission given",
	},
	{
		name: "fleets", fault: "too many fleets", types: []string{"r5a.large"}, phase: 3, within: 2 * time.Minute,
		rule: map[string]any{"action": "CreateFleet", "code": "MaxFleetCountExceeded"},
		saw:  []string{"MaxFleetCountExceeded"}, fix: untilCleared, fixed: "quota raised",
	},
	{
		name: "pending-account", fault: "the account is being verified", types: []string{"r6a.large"}, class: []change{},
		rule: map[string]any{"action": "CreateFleet", "perPool": true, "code": "PendingVerification"},
		saw:  []string{"PendingVerification"}, fix: untilCleared, fixed: "account verified",
	},
	{
		name: "template-gone", fault: "the launch template vanishes before CreateFleet", types: []string{"r7i.large"},
		rule: map[string]any{"action": "CreateFleet", "deleteTemplates": true, "times": 1},
	},
	{
		name: "user-data", fault: "EC2 refuses the user data", types: []string{"r6i.large"}, class: []change{},
		rule: map[string]any{"action": "CreateLaunchTemplate", "code": "InvalidUserData.Malformed", "message": "User data is limited to 16384 bytes"},
		saw:  []string{"User data is limited to 16384 bytes"}, fix: untilCleared, fixed: "user data shortened",
	},
	{
		name: "new-profile", fault: "EC2 does not know the instance profile yet, twice", types: []string{"r5n.large"}, class: []change{},
		rule: map[string]any{
			"action": "CreateFleet", "perPool": true, "times": 2, "code": "InvalidParameterValue",
			"message": "Value (demo) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name",
		},
	},
	{
		name: "image-gone", fault: "the image is deregistered", types: []string{"c8i.large"}, class: []change{},
		rule: map[string]any{"action": "CreateFleet", "perPool": true, "code": "InvalidAMIID.NotFound", "message": "The image id '[ami-1]' does not exist"},
		saw:  []string{"InvalidAMIID.NotFound"}, fix: untilCleared, fixed: "image restored",
	},
	{
		name: "gap", fault: "DescribeInstances omits the machine for 60 s", types: []string{"m8i.large"},
		rule: map[string]any{"action": "DescribeInstances", "omitInstances": true, "endsAfter": "60s"},
	},
	{
		name: "protected", fault: "TerminateInstances is refused twice", types: []string{"c8a.large"},
		rule: map[string]any{"action": "TerminateInstances", "code": "OperationNotPermitted", "times": 2},
	},

	// Node classes.
	{
		name: "class-subnets", fault: "DescribeSubnets is not allowed", types: []string{"m8a.large"},
		class: []change{{"spec.subnetSelectorTerms", []any{map[string]any{"tags": map[string]any{"Name": "demo-private-2"}}}}},
		rule:  map[string]any{"action": "DescribeSubnets", "code": "UnauthorizedOperation", "tags": map[string]any{"Name": "demo-private-2"}},
		saw:   []string{"ec2:DescribeSubnets"}, fix: untilCleared, fixed: "permission given",
	},
	{
		name: "class-image", within: 2 * time.Minute, fault: "the alias' SSM parameters are missing", types: []string{"r8i.large"},
		class: []change{{"spec.amiSelectorTerms", []any{map[string]any{"alias": "al2023@v20260304"}}}},
		rule:  map[string]any{"service": "ssm", "code": "ParameterNotFound", "params": map[string]any{"Name": "*v20260304*"}},
		saw:   []string{"v20260304"}, fix: untilCleared, fixed: "parameters published",
	},
	{
		name: "class-role", fault: "AddRoleToInstanceProfile is not allowed", types: []string{"r8a.large"},
		class: []change{{"spec.role", "MatrixRole"}},
		rule:  map[string]any{"service": "iam", "action": "AddRoleToInstanceProfile", "code": "AccessDenied", "params": map[string]any{"RoleName": "MatrixRole"}},
		saw:   []string{"iam:AddRoleToInstanceProfile"}, fix: untilCleared, fixed: "permission given",
	},

	// Machines.
	{
		name: "dies", fault: "the first machine dies at once", types: []string{"r5d.large"}, launched: 2, phase: allPhases, within: 5 * time.Minute,
		rule: map[string]any{"service": "node", "action": "Boot", "machine": map[string]any{"die": true}, "times": 1},
	},
	{
		name: "slow-boot", fault: "the machine takes 20 s more to boot", types: []string{"r7a.large"},
		rule: map[string]any{"service": "node", "action": "Boot", "delay": "20s"},
	},
	{
		name: "never-joins", fault: "the machine never registers", types: []string{"r5b.large"}, launched: 2,
		rule: map[string]any{"service": "node", "action": "Join", "dropRequest": true},
		saw:  []string{"NodeClaim Registered="}, fix: deleteClaims, fixed: "NodeClaim deleted",
	},
	{
		name: "never-ready", fault: "the kubelet never becomes ready", types: []string{"r6id.large"}, launched: 2,
		rule: map[string]any{"service": "node", "action": "Ready", "dropRequest": true},
		saw:  []string{"NodeClaim Initialized="}, fix: deleteClaims, fixed: "NodeClaim deleted",
	},
	{
		name: "other-id", fault: "the machine registers with another provider id", types: []string{"r6in.large"}, launched: 2,
		rule: map[string]any{"service": "node", "action": "Join", "machine": map[string]any{"providerId": "aws:///us-east-1a/i-00000000000000000"}},
		saw:  []string{"NodeClaim Registered="}, fix: deleteClaims, fixed: "NodeClaim deleted",
	},
	{
		name: "no-taints", fault: "the machine registers without its taints", types: []string{"i4i.large"}, launched: 2,
		rule: map[string]any{"service": "node", "action": "Join", "machine": map[string]any{"withoutTaints": true}},
	},
	{
		name: "no-labels", fault: "the machine registers without its labels", types: []string{"m5zn.large"},
		rule: map[string]any{"service": "node", "action": "Join", "machine": map[string]any{"withoutLabels": true}},
	},
	{
		name: "smaller", fault: "the first machine has 60 % less CPU than its type", types: []string{"m5dn.large", "r5dn.large"}, launched: 2,
		rule: map[string]any{"service": "node", "action": "Join", "machine": map[string]any{"allocatable": map[string]any{"cpu": "-0.6"}}, "times": 1},
	},
}
