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
)

// goneFor is how long an image is not chosen after EC2 could not launch it: descriptions and parameters may name it for
// a while. An image that comes back has another id.
const goneFor = 30 * time.Minute

var (
	// imageGoneCodes say that an image was there when the class was resolved and cannot be launched now.
	imageGoneCodes = []string{"InvalidAMIID.NotFound", "InvalidAMIID.Unavailable"}
	imageIDs       = regexp.MustCompile(`ami-[0-9a-z]+`)
)

// goneImages are the class's images that EC2's message about one of imageGoneCodes names.
func (c *class) goneImages(message string) []string {
	var gone []string
	for _, id := range imageIDs.FindAllString(message, -1) {
		if !slices.Contains(gone, id) && slices.ContainsFunc(c.images, func(of image) bool { return of.ID == id }) {
			gone = append(gone, id)
		}
	}
	return gone
}

// resolveWithout looks up the class again, without images that EC2 says are gone. Afterwards the class launches the next
// best ones; if there are none for any type it is not ready any more, and the error says so.
func (p *Provider) resolveWithout(ctx context.Context, of *awsv1.EC2NodeClass, gone ...string) error {
	klog.FromContext(ctx).Info("Images are gone, looking for others", "EC2NodeClass", klog.KRef("", of.Name), "images", gone)
	now := time.Now()
	p.mu.Lock()
	maps.DeleteFunc(p.gone, func(_ string, at time.Time) bool { return now.Sub(at) > goneFor })
	for _, id := range gone {
		p.gone[id] = now
	}
	maps.DeleteFunc(p.parameters, func(_ string, read parameter) bool { return slices.Contains(gone, read.value) })
	if c := p.resolved(of); c != nil {
		c.resolvedAt, c.imagesAt = time.Time{}, time.Time{}
	}
	p.mu.Unlock()
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

// isGone says that EC2 could not launch the image lately.
func (p *Provider) isGone(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, ok := p.gone[id]
	return ok && time.Since(at) <= goneFor
}
