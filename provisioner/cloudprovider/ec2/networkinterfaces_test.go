// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestNetworkInterfaces(t *testing.T) {
	t.Parallel()
	type nic struct {
		Card, Device int32
		Kind         string
		Public       bool
	}
	cases := map[string]struct {
		efa  int64
		want []nic
	}{
		"plain":      {0, []nic{{0, 0, "", true}}},
		"one EFA":    {1, []nic{{0, 0, "efa", true}}},
		"four cards": {4, []nic{{0, 0, "efa", false}, {1, 1, "efa", false}, {2, 1, "efa", false}, {3, 1, "efa", false}}},
	}
	for name, c := range cases {
		var got []nic
		for _, n := range networkInterfaces(&awsv1.EC2NodeClassSpec{AssociatePublicIPAddress: aws.Bool(true)}, []string{"sg-1"}, c.efa) {
			if diff := cmp.Diff([]string{"sg-1"}, n.Groups); diff != "" {
				t.Errorf("%s: groups (-want +got):\n%s", name, diff)
			}
			got = append(got, nic{*n.NetworkCardIndex, *n.DeviceIndex, aws.ToString(n.InterfaceType), aws.ToBool(n.AssociatePublicIpAddress)})
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// EFA interfaces are attached only to machines whose claims ask for them, and only those promise them.
func TestEFAOnRequest(t *testing.T) {
	t.Parallel()
	c := newCloud(t)
	class := c.ready(t, demoClass())
	it := c.typeNamed(t, class, "p4d.24xlarge")
	one := v1.ResourceList{awsv1.ResourceEFA: resource.MustParse("1")}
	if _, without := it.For(nil); len(without) != len(it.Allocatable)-1 || !without.Name(awsv1.ResourceEFA, "").IsZero() {
		t.Errorf("without a request: %v", without)
	}
	if _, with := it.For(one); with.Name(awsv1.ResourceEFA, "").Value() != 4 {
		t.Errorf("with a request: %v, want 4 EFA interfaces", with)
	}
	req := launchRequest(class, "efa", c.options(t, class, onDemand, "p4d.24xlarge"))
	for want, requests := range map[int]v1.ResourceList{1: nil, 4: one} {
		req.Requests = requests
		f, failure := c.newFleet(c.resolved(class), &req, nil, c.roomsOf(c.resolved(class)))
		if failure != nil {
			t.Fatal(failure)
		}
		if got := len(f.templates[0].data.NetworkInterfaces); got != want {
			t.Errorf("requests %v: %d interfaces, want %d", requests, got, want)
		}
	}
}
