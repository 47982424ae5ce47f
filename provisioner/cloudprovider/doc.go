// SPDX-License-Identifier: Apache-2.0

// Package cloudprovider is the domain side of the cloud: what can be bought (instance types and their offerings),
// how it is launched and what a launch may answer. It knows no cloud by name and does no I/O itself; the planner and
// the claim state machine use its types, adapters such as cloudprovider/ec2 implement Interface.
package cloudprovider
