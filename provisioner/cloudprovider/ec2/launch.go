// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"k8s.io/klog/v2"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
)

const (
	// A launch template that was just created may be invisible to CreateFleet for a moment.
	templateTries = 7
	templatePause = 250 * time.Millisecond // doubled with every try
	// So may an instance profile, for longer.
	profileTries = 8
	profilePause = 2 * time.Second
	// maxToken is EC2's limit of a client token, in characters.
	maxToken = 64
)

// Launch implements cloudprovider.Interface: CreateLaunchTemplate for each template that is new, then CreateFleet.
// Subnets, images and the rest come from the last Resolve.
func (p *Provider) Launch(ctx context.Context, req cloudprovider.LaunchRequest) (*cloudprovider.LaunchResult, error) {
	f, failure := p.fleetFor(&req)
	if failure != nil {
		return nil, failure
	}
	ctx, cancel := context.WithTimeout(ctx, launchTimeout)
	defer cancel()
	made := &attempts{}
	ctx = context.WithValue(ctx, attemptsKey{}, made)
	for try := max(1, f.firstTry); ; try++ {
		out, err := p.createFleet(ctx, f, clientToken(req.Token, try))
		if err != nil {
			if ctx.Err() == nil {
				p.settle(req.Token, f, nil)
			}
			p.rememberRefusal(f, err)
			return nil, p.explainLaunch(ctx, f, launchError(err, made.doubtful.Load()))
		}
		result, failure := p.readFleet(ctx, f, out)
		if failure != nil && f.awaitsProfile(failure) && try < profileTries && sleep(ctx, profilePause) {
			continue
		}
		p.settle(req.Token, f, result)
		if failure == nil {
			p.launched(f.class)
			if gone := f.class.goneImages(result.Failures); len(gone) > 0 {
				p.missImages(f.class.object, gone)
			}
			return result, nil
		}
		again, goneFailure := p.withoutGone(ctx, f, &req, failure.Failures, try)
		if again == nil {
			return nil, p.explainLaunch(ctx, f, cmp.Or(goneFailure, failure))
		}
		f = again
	}
}

// clientToken is the token of the n-th CreateFleet of a launch. Another one than the first is used only after EC2 has
// answered the one before with nothing, so a replay walks through the same answers to the same end.
func clientToken(token string, n int) string {
	if n > 1 {
		token += "-" + strconv.Itoa(n)
	}
	if len(token) > maxToken {
		sum := sha256.Sum256([]byte(token))
		token = hex.EncodeToString(sum[:])
	}
	return token
}

// awaitsProfile says that nothing came because EC2 does not see the instance profile, which IAM has.
func (f *fleet) awaitsProfile(failure *cloudprovider.LaunchError) bool {
	return f.class.object.Spec.InstanceProfile == nil && failure.Failure == cloudprovider.NodeClassNotReady &&
		slices.ContainsFunc(failure.Failures, func(of cloudprovider.OfferingFailure) bool { return aboutProfile(of.Message) })
}

// createFleet calls EC2 with the token. Templates that have vanished are created again, once; after that it waits for
// them to become visible.
func (p *Provider) createFleet(ctx context.Context, f *fleet, token string) (*ec2.CreateFleetOutput, error) {
	pause := templatePause
	for try := 1; ; try++ {
		release, existed, err := p.useTemplates(ctx, f.templates)
		if err != nil {
			return nil, err
		}
		out, err := p.ec2.CreateFleet(ctx, f.input(token))
		release()
		if !hasCode(err, templateNotFoundCodes) || try == templateTries {
			return out, err
		}
		klog.FromContext(ctx).Info("A launch template is not there, creating it again", "token", token, "try", try)
		p.missTemplates(f.templates)
		if !existed && try == 1 {
			continue // it vanished: create it and go on
		}
		if !sleep(ctx, pause) {
			return nil, err
		}
		pause *= 2
	}
}

// sleep waits for d; false if the context ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
