// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"k8s.io/klog/v2"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
)

// goneFor is how long an image is not chosen after EC2 could not launch it: descriptions and parameters may name it for
// a while. An image that comes back has another id.
const goneFor = 30 * time.Minute

var (
	// imageGoneCodes say that an image was there when the class was resolved and cannot be launched now.
	imageGoneCodes = []string{"InvalidAMIID.NotFound", "InvalidAMIID.Unavailable"}
	imageIDs       = regexp.MustCompile(`ami-[0-9a-z]+`)
)

// goneImages are the images of the class that failures of a launch say are gone.
func (c *class) goneImages(failures []cloudprovider.OfferingFailure) []string {
	var gone []string
	for i := range failures {
		if !slices.Contains(imageGoneCodes, failures[i].Code) {
			continue
		}
		for _, id := range imageIDs.FindAllString(failures[i].Message, -1) {
			if !slices.Contains(gone, id) && slices.ContainsFunc(c.images, func(of image) bool { return of.ID == id }) {
				gone = append(gone, id)
			}
		}
	}
	return gone
}

// missImages has the class looked up again the next time it is asked for, without images that EC2 says are gone.
func (p *Provider) missImages(of *awsv1.EC2NodeClass, gone []string) {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.gone, func(_ string, at time.Time) bool { return now.Sub(at) > goneFor })
	for _, id := range gone {
		p.gone[id] = now
	}
	maps.DeleteFunc(p.parameters, func(_ string, read parameter) bool { return slices.Contains(gone, read.value) })
	if c := p.resolved(of); c != nil {
		c.resolvedAt, c.imagesAt = time.Time{}, time.Time{}
	}
}

// resolveWithout looks up the class again at once. Afterwards it launches the next best images; if there are none for any
// type it is not ready any more, and the error says so.
func (p *Provider) resolveWithout(ctx context.Context, of *awsv1.EC2NodeClass, gone []string) error {
	klog.FromContext(ctx).Info("Images are gone, looking for others", "EC2NodeClass", klog.KRef("", of.Name), "images", gone)
	p.missImages(of, gone)
	status, err := p.Resolve(ctx, of)
	if err != nil {
		return err
	}
	resolved := of.DeepCopy()
	resolved.Status = *status
	if root := resolved.StatusConditions().Root(); !root.IsTrue() {
		images := resolved.StatusConditions().Get(awsv1.ConditionTypeAMIsReady)
		return fmt.Errorf("after %v was gone: %s %s", gone, images.Reason, images.Message)
	}
	return nil
}

// withoutGone is the fleet of the same request without images that EC2 has just said are gone; nil if none are, or if the
// launch has been through this already. EC2 has answered the launch with nothing, so that the next CreateFleet needs
// another token. The error says what is wrong with the class now.
func (p *Provider) withoutGone(ctx context.Context, f *fleet, req *cloudprovider.LaunchRequest, failures []cloudprovider.OfferingFailure, try int) (*fleet, *cloudprovider.LaunchError) {
	gone := f.class.goneImages(failures)
	if len(gone) == 0 || f.firstTry > 1 {
		return nil, nil
	}
	if err := p.resolveWithout(ctx, f.class.object, gone); err != nil {
		return nil, &cloudprovider.LaunchError{Failure: cloudprovider.NodeClassNotReady, Code: imageGoneCodes[0], Reason: "AMINotFound", Failures: failures, Err: err}
	}
	p.mu.Lock()
	delete(p.choices, req.Token)
	p.mu.Unlock()
	again, failure := p.fleetFor(req)
	if failure != nil {
		return nil, failure
	}
	again.firstTry = try + 1
	p.mu.Lock()
	if made := p.choices[req.Token]; made != nil {
		made.firstTry = again.firstTry
	}
	p.mu.Unlock()
	return again, nil
}

// isGone says that EC2 could not launch the image lately.
func (p *Provider) isGone(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, ok := p.gone[id]
	return ok && time.Since(at) <= goneFor
}
