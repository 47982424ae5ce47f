// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"maps"
	"slices"
	"testing"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
)

// The samples are what Karpenter's documentation publishes for AL2023 with default settings.

func TestLabelsAsPublished(t *testing.T) {
	t.Parallel()
	sold := soldInTheRegion().types
	published := readPublished(t, "published-labels.json.gz")
	compared := 0
	for _, name := range slices.Sorted(maps.Keys(published)) {
		if sold[name] == nil {
			continue
		}
		compared++
		got := maps.Clone(sold[name].labels)
		for key, want := range map[string]string{v1.LabelTopologyRegion: "us-east-1", awsv1.LabelInstanceTenancy: "default"} { // not in the documentation
			if got[key] != want {
				t.Errorf("%s: label %s is %q, want %q", name, key, got[key], want)
			}
			delete(got, key)
		}
		if diff := cmp.Diff(published[name], got); diff != "" {
			t.Errorf("%s: labels (-published +got):\n%s", name, diff)
		}
	}
	if compared < 200 {
		t.Errorf("compared %d types only", compared)
	}
}

func TestAllocatableAsPublished(t *testing.T) {
	t.Parallel()
	sold := soldInTheRegion().types
	shape := newCloud(t).shapeOf(&awsv1.EC2NodeClassSpec{}, awsv1.AMIFamilyAL2023)
	published := readPublished(t, "published-allocatable.json.gz")
	compared := 0
	for _, name := range slices.Sorted(maps.Keys(published)) {
		if sold[name] == nil {
			continue
		}
		compared++
		_, allocatable, err := sold[name].resources(&shape)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for key, amount := range allocatable {
			got[string(key)] = amount.String()
		}
		delete(published[name], string(awsv1.ResourceEFA)) // launches here ask for no EFA interface
		if _, listed := published[name][string(awsv1.ResourceAWSPodENI)]; !listed {
			delete(got, string(awsv1.ResourceAWSPodENI)) // the documentation's table is older than ours
		}
		if diff := cmp.Diff(published[name], got); diff != "" {
			t.Errorf("%s: allocatable (-published +got):\n%s", name, diff)
		}
	}
	if compared < 200 {
		t.Errorf("compared %d types only", compared)
	}
}
