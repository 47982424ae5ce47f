// SPDX-License-Identifier: Apache-2.0

package cloudprovider

import (
	"context"
	"time"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	v1 "k8s.io/api/core/v1"
)

// Interface is a cloud, as the provisioner's event loop sees it. Every method that takes a context does I/O, is
// called beside the scheduling thread, ends with its context and may be repeated: asking twice has the effect of
// asking once. Implementations are safe for concurrent use.
type Interface interface {
	// InstanceTypes lists what the class could launch now, from memory: it is called on the scheduling thread.
	// It returns ErrNotReady until Resolve has succeeded once for this generation of the class.
	InstanceTypes(class *awsv1.EC2NodeClass) ([]*InstanceType, error)

	// Resolve looks up what the class selects (subnets, security groups, images, instance profile) and refreshes
	// what InstanceTypes answers. The status returned is complete, conditions included; the error is only for
	// faults that a later try may cure (the conditions then name them as well).
	Resolve(ctx context.Context, class *awsv1.EC2NodeClass) (*awsv1.EC2NodeClassStatus, error)

	// Launch makes req.Count identical machines. Equal requests (same Token) give equal answers and no second
	// machine. Fewer instances than asked is not an error: the answer then says why per offering.
	// Errors are *LaunchError.
	Launch(ctx context.Context, req LaunchRequest) (*LaunchResult, error)

	// FindLaunched lists the instances that carry the launch's Group tag, whatever attempt made them.
	// A machine launched less than some seconds ago may be missing.
	FindLaunched(ctx context.Context, group string) ([]Instance, error)

	// Get returns the instance of a provider id, ErrInstanceNotFound when it is gone (terminated counts as gone).
	Get(ctx context.Context, providerID string) (*Instance, error)
	// List returns every live instance of this cluster that a NodePool's launch made.
	List(ctx context.Context) ([]Instance, error)
	// Tag writes those of the tags whose keys the instance lacks. It is for what is not known at launch (Name,
	// karpenter.sh/nodeclaim), and leaves alone what users have set.
	Tag(ctx context.Context, providerID string, tags map[string]string) error
	// Terminate asks for the end of an instance; ErrInstanceNotFound when it is gone already.
	Terminate(ctx context.Context, providerID string) error

	// Sweep deletes launch templates that no launch has used for longer than unused.
	Sweep(ctx context.Context, unused time.Duration) error
	// Forget drops what is kept for a class that was deleted, launch templates and instance profile included.
	Forget(ctx context.Context, className string) error
	// Check proves that the endpoint answers, credentials are accepted and the cluster exists. The error names
	// the endpoint.
	Check(ctx context.Context) error
}

// LaunchRequest asks for Count identical machines of one plan. It is built from NodeClaim objects only, so that a
// restarted process sends the very same request.
type LaunchRequest struct {
	// Token makes the launch idempotent: group id and attempt.
	Token string
	// Group is the group id that is written on claims and as a tag on the instances.
	Group string
	Count int
	// Claims are the names of the NodeClaims, by ordinal; len(Claims) == Count. Nothing of a launch depends on them.
	Claims []string

	NodePool  string
	NodeClass *awsv1.EC2NodeClass
	// Options are the offerings to choose from, cheapest first, all of them large enough.
	// The adapter takes as many of them as one call takes, none that it knows to be unavailable, and of the
	// capacity types reserved before spot before on-demand.
	Options []LaunchOption
	// Requests are those of the claims, the most of each where they differ: a machine has what its type has only on
	// request if they name it.
	Requests v1.ResourceList
	// MinValues are, by label, how many values the options of one call must have at least.
	MinValues map[string]int
	// Labels and Taints are given to the kubelet at registration; karpenter.sh/unregistered:NoExecute is among
	// the Taints.
	Labels map[string]string
	Taints []v1.Taint
	// Tags are added to those of the class and the provider's own.
	Tags map[string]string
}

// LaunchOption is an offering of an instance type.
type LaunchOption struct {
	InstanceType *InstanceType
	Offering     Offering
}

// LaunchResult is what a launch gave.
type LaunchResult struct {
	// Instances in the order the cloud gave them; equal for every replay of a token.
	Instances []Instance
	// Failures are the offerings that were tried and had nothing; they are remembered by the adapter, and
	// InstanceTypes shows them as unavailable for a while.
	Failures []OfferingFailure
}

// OfferingFailure says why one offering gave no machine.
type OfferingFailure struct {
	InstanceType, Zone, CapacityType string
	// Code and Message are the cloud's own.
	Code, Message string
	// Passing: the failure says nothing about the offering (the cloud was throttling, or at fault itself).
	Passing bool
}

// Instance is one machine as the cloud describes it.
type Instance struct {
	ID string
	// ProviderID is what the node's spec.providerID will be: aws:///zone/id.
	ProviderID   string
	InstanceType string
	Zone, ZoneID string
	CapacityType string
	ImageID      string
	SubnetID     string
	LaunchTime   time.Time
	Tags         map[string]string
	// State is pending, running, shutting-down, stopping, stopped or terminated.
	State string
}
