// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"github.com/google/go-cmp/cmp"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/fakeaws"
	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
)

func (c *cloud) imageNames(class *awsv1.EC2NodeClass) []string {
	var list []string
	if resolved := c.classes[class.Name]; resolved != nil {
		for _, i := range resolved.images {
			list = append(list, i.Name)
		}
	}
	return list
}

// B103: the image goes between resolve and launch. The class is looked up again once, and the same launch gets the next
// image, even while a parameter still names the one that is gone.
func TestB103GoneBeforeLaunch(t *testing.T) {
	cases := map[string]struct {
		terms       []awsv1.AMISelectorTerm
		state       string // of node-2, when it is launched
		wantImages  []string
		wantErr     string
		wantFailure cloudprovider.LaunchFailure
		wantFleets  int
	}{
		"the next one": {
			terms: []awsv1.AMISelectorTerm{{Name: "node-?", Owner: "self"}}, state: "deregistered", wantImages: []string{"node-1"}, wantFleets: 2,
		},
		"not available any more": {
			terms: []awsv1.AMISelectorTerm{{Name: "node-?", Owner: "self"}}, state: "failed", wantImages: []string{"node-1"}, wantFleets: 2,
		},
		"a parameter names it still, another term has one": {
			terms: []awsv1.AMISelectorTerm{{SSMParameter: "/ours/node-2"}, {SSMParameter: "/ours/fresh-1"}}, state: "deregistered",
			wantImages: []string{"fresh-1"}, wantFleets: 2,
		},
		"no other": {
			terms: []awsv1.AMISelectorTerm{{SSMParameter: "/ours/node-2"}}, state: "deregistered", wantErr: "AMINotFound", wantFailure: cloudprovider.NodeClassNotReady, wantFleets: 1,
		},
		"one of another architecture only": {
			terms: []awsv1.AMISelectorTerm{{Name: "node-2"}, {Name: "node-arm-2"}}, state: "deregistered", wantImages: []string{"node-arm-2"},
			wantErr: "the class can launch none of the options", wantFailure: cloudprovider.InsufficientCapacity, wantFleets: 1,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud(t)
				ourImages(c)
				class := demoClass()
				customImage(class, tc.terms[0])
				class.Spec.AMISelectorTerms = tc.terms
				class = c.ready(t, class)
				req := launchRequest(class, "g1-1", c.options(t, class, onDemand, "m5.large"))
				c.aws.SetImage(fakeaws.Image{Name: "node-2", State: tc.state})
				result, err := c.Launch(t.Context(), req)
				if n := c.calls("CreateFleet"); n != tc.wantFleets {
					t.Errorf("%d CreateFleet calls, want %d", n, tc.wantFleets)
				}
				if diff := cmp.Diff(tc.wantImages, c.imageNames(class)); diff != "" {
					t.Errorf("images (-want +got):\n%s", diff)
				}
				if tc.wantErr != "" {
					if failure := wantLaunchError(t, err); failure.Failure != tc.wantFailure || !strings.Contains(failure.Error(), tc.wantErr) {
						t.Errorf("got %v, want %s …%s…", err, tc.wantFailure, tc.wantErr)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				again := c.launch(t, req)
				if again.Instances[0].ID != result.Instances[0].ID || len(c.aws.Instances()) != 1 {
					t.Errorf("the replay gave %+v, first %+v", again.Instances, result.Instances)
				}
				if want := idOf(t, c, tc.wantImages[0]); result.Instances[0].ImageID != want {
					t.Errorf("image %s, want %s", result.Instances[0].ImageID, want)
				}
			})
		})
	}
}

// A neighbour: every image that there is goes, one after the other: a launch is repeated once, and not for ever.
func TestB103AllImagesGoOneAfterTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(t)
		ourImages(c)
		class := demoClass()
		customImage(class, awsv1.AMISelectorTerm{Name: "node-?", Owner: "self"})
		class = c.ready(t, class)
		req := launchRequest(class, "g1-1", c.options(t, class, onDemand, "m5.large"))
		c.aws.SetFault(fakeaws.Rule{Action: "CreateFleet", PerPool: true, Code: "InvalidAMIID.NotFound", Message: "The image id '[" + idOf(t, c, "node-2") + "]' does not exist", Times: 3})
		c.aws.SetFault(fakeaws.Rule{Action: "CreateFleet", PerPool: true, Code: "InvalidAMIID.NotFound", Message: "The image id '[" + idOf(t, c, "node-1") + "]' does not exist"})
		_, err := c.Launch(t.Context(), req)
		if failure := wantLaunchError(t, err); failure.Failure != cloudprovider.NodeClassNotReady || c.calls("CreateFleet") != 2 {
			t.Errorf("%v after %d calls", err, c.calls("CreateFleet"))
		}
		c.aws.DeleteFault("")
		time.Sleep(goneFor + imagesTTL) // what was wrongly called gone is taken again
		c.ready(t, class)
		if diff := cmp.Diff([]string{"node-2"}, c.imageNames(class)); diff != "" {
			t.Errorf("images later (-want +got):\n%s", diff)
		}
	})
}

// A neighbour: one of two images is gone, and the other has launched: the next launch knows.
func TestB103OneOfTwoIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(t)
		ourImages(c)
		class := demoClass()
		customImage(class, awsv1.AMISelectorTerm{Name: "node-?", Owner: "self"})
		class.Spec.AMISelectorTerms = append(class.Spec.AMISelectorTerms, awsv1.AMISelectorTerm{Name: "node-arm-2"})
		class = c.ready(t, class)
		options := append(c.options(t, class, onDemand, "m5.large"), c.options(t, class, onDemand, "m6g.xlarge")...)
		c.aws.SetImage(fakeaws.Image{Name: "node-2", State: "deregistered"})
		result := c.launch(t, launchRequest(class, "g1-1", options))
		if len(result.Instances) != 1 || result.Instances[0].InstanceType != "m6g.xlarge" {
			t.Errorf("%+v", result.Instances)
		}
		c.ready(t, class)
		if diff := cmp.Diff([]string{"node-arm-2", "node-1"}, c.imageNames(class)); diff != "" {
			t.Errorf("images (-want +got):\n%s", diff)
		}
	})
}
