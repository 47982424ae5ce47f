// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"maps"
	"slices"
)

// action answers one AWS operation. It returns the reply's fields, or an *apiError.
type action func(*Server, *request) (any, error)

// actions are all operations that this endpoint serves, by service and name.
var actions = map[string]action{
	"ec2/CreateFleet":                   createFleet,
	"ec2/CreateLaunchTemplate":          createLaunchTemplate,
	"ec2/CreateTags":                    createTags,
	"ec2/DeleteLaunchTemplate":          deleteLaunchTemplate,
	"ec2/DescribeCapacityReservations":  describeCapacityReservations,
	"ec2/DescribeImages":                describeImages,
	"ec2/DescribeInstances":             describeInstances,
	"ec2/DescribeInstanceStatus":        describeInstanceStatus,
	"ec2/DescribeInstanceTypeOfferings": describeInstanceTypeOfferings,
	"ec2/DescribeInstanceTypes":         describeInstanceTypes,
	"ec2/DescribeLaunchTemplates":       describeLaunchTemplates,
	"ec2/DescribePlacementGroups":       describePlacementGroups,
	"ec2/DescribeSecurityGroups":        describeSecurityGroups,
	"ec2/DescribeSpotPriceHistory":      describeSpotPriceHistory,
	"ec2/DescribeSubnets":               describeSubnets,
	"ec2/RebootInstances":               rebootInstances,
	"ec2/RunInstances":                  runInstances,
	"ec2/TerminateInstances":            terminateInstances,

	"iam/AddRoleToInstanceProfile":      addRoleToInstanceProfile,
	"iam/CreateInstanceProfile":         createInstanceProfile,
	"iam/DeleteInstanceProfile":         deleteInstanceProfile,
	"iam/GetInstanceProfile":            getInstanceProfile,
	"iam/GetRole":                       getRole,
	"iam/ListInstanceProfiles":          listInstanceProfiles,
	"iam/RemoveRoleFromInstanceProfile": removeRoleFromInstanceProfile,
	"iam/TagInstanceProfile":            tagInstanceProfile,

	"sqs/DeleteMessage":      deleteMessage,
	"sqs/GetQueueAttributes": getQueueAttributes,
	"sqs/GetQueueUrl":        getQueueURL,
	"sqs/ReceiveMessage":     receiveMessage,
	"sqs/SendMessage":        sendMessage,

	"arc-zonal-shift/GetManagedResource": getManagedResource,
	"eks/DescribeCluster":                describeCluster,
	"pricing/GetProducts":                getProducts,
	"ssm/GetParameter":                   getParameter,
	"sts/DecodeAuthorizationMessage":     decodeAuthorizationMessage,
	"sts/GetCallerIdentity":              getCallerIdentity,
}

// Actions are the names of all operations that this endpoint serves, as service/Action, sorted.
func Actions() []string { return slices.Sorted(maps.Keys(actions)) }
