// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"github.com/aws/smithy-go"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
)

const (
	// LaunchFaultFor is how long a class stays not ready for what a launch has told of it, unless one succeeds.
	LaunchFaultFor = 2 * time.Minute
	// decodeTimeout bounds the question which permission is missing; without an answer the message says less.
	decodeTimeout = 5 * time.Second
	// decodeDeniedFor is how long it is not asked again after it was not permitted.
	decodeDeniedFor = time.Hour
)

// launchFault is what a launch has shown to be wrong with a class, or with the role that launches it.
type launchFault struct {
	uid        types.UID
	generation int64
	fault
	until time.Time
}

// launchFaults are by class name. Their owner guards them.
type launchFaults struct {
	byClass        map[string]launchFault
	decodeDeniedAt time.Time
}

// explainLaunch puts what people need to know into the error of a failed launch: for a missing permission which one.
// What is wrong with the class is noted for its conditions.
func (p *Provider) explainLaunch(ctx context.Context, f *fleet, failure *cloudprovider.LaunchError) *cloudprovider.LaunchError {
	if failure.Failure != cloudprovider.NodeClassNotReady {
		return failure
	}
	reason := failure.Reason
	if api, ok := errors.AsType[smithy.APIError](failure.Err); ok && moodOf(api.ErrorCode(), api.ErrorMessage()).meaning == meansPermission {
		service, operation := "EC2", "CreateFleet"
		if called, ok := errors.AsType[*smithy.OperationError](failure.Err); ok {
			service, operation = called.Service(), called.Operation()
		}
		text := p.denialOf(ctx, api.ErrorMessage()).sentence(strings.ToLower(service)+":"+operation, api.ErrorMessage())
		failure.Err = &said{text, failure.Err}
		reason = operation + "AuthCheckFailed"
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults.byClass[f.class.object.Name] = launchFault{
		uid: f.class.object.UID, generation: f.class.object.Generation, until: time.Now().Add(LaunchFaultFor),
		fault: fault{cmp.Or(reason, reasonLaunchFailed), failure.Err.Error()},
	}
	return failure
}

// denialOf reads an authorization failure, with the help of STS where EC2 encodes it.
func (p *Provider) denialOf(ctx context.Context, message string) denial {
	d := parseDenial(message)
	p.mu.Lock()
	denied := !p.faults.decodeDeniedAt.IsZero() && time.Since(p.faults.decodeDeniedAt) < decodeDeniedFor
	p.mu.Unlock()
	if d.encoded == "" || denied {
		return d
	}
	ctx, cancel := context.WithTimeout(ctx, decodeTimeout)
	defer cancel()
	out, err := call(ctx, "decoding an authorization message", p.sts.DecodeAuthorizationMessage, &sts.DecodeAuthorizationMessageInput{EncodedMessage: &d.encoded})
	if err != nil {
		klog.FromContext(ctx).V(2).Info("Cannot tell which permission is missing", "err", describe(err))
		if moodOf(errorCode(err), "").meaning == meansPermission {
			p.mu.Lock()
			p.faults.decodeDeniedAt = time.Now()
			p.mu.Unlock()
		}
		return d
	}
	return d.decoded(aws.ToString(out.DecodedMessage))
}

// launched forgets what was wrong with the class.
func (p *Provider) launched(c *class) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.faults.byClass, c.object.Name)
}

// withLaunchFault lays what the last launch has shown over the status of a resolved class. The class itself stays in
// force: launches under way go on trying, and the first that succeeds ends the fault.
func (p *Provider) withLaunchFault(of *awsv1.EC2NodeClass, status *awsv1.EC2NodeClassStatus) *awsv1.EC2NodeClassStatus {
	p.mu.Lock()
	known, ok := p.faults.byClass[of.Name]
	if ok && (known.uid != of.UID || known.generation != of.Generation || !time.Now().Before(known.until)) {
		delete(p.faults.byClass, of.Name)
		ok = false
	}
	p.mu.Unlock()
	if !ok || status == nil {
		return status
	}
	object := of.DeepCopy()
	object.Status = *status
	if set := object.StatusConditions(); set.IsTrue(awsv1.ConditionTypeValidationSucceeded) {
		set.SetFalse(awsv1.ConditionTypeValidationSucceeded, known.reason, known.message)
	}
	return &object.Status
}
