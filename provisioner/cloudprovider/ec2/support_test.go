// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"os"
	"slices"
	"sync"
	"testing"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/fakeaws"
	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
)

// cloud is a fake AWS and a Provider that talks to it.
type cloud struct {
	*Provider
	aws *fakeaws.Server
}

func newCloud(t *testing.T, change ...func(*fakeaws.Options)) *cloud {
	t.Helper()
	options := fakeaws.Options{ClusterName: "demo", CA: []byte("-----BEGIN CERTIFICATE-----\nZg==\n-----END CERTIFICATE-----\n")}
	for _, f := range change {
		f(&options)
	}
	server := fakeaws.New(options)
	t.Cleanup(server.Close)
	return restart(&cloud{aws: server})
}

// restart is another process with the same credentials.
func restart(c *cloud) *cloud {
	p := New(Options{ClusterName: "demo", AWS: c.aws.AWSConfig("AKIATEST")})
	p.catalogue = soldInTheRegion()
	return &cloud{Provider: p, aws: c.aws}
}

// soldInTheRegion is read once for all tests: the fake sells the same to everybody.
var soldInTheRegion = sync.OnceValue(func() *catalogue {
	server := fakeaws.New(fakeaws.Options{})
	defer server.Close()
	p := New(Options{ClusterName: "demo", AWS: server.AWSConfig("AKIATEST")})
	for { // until the price list has been read: nobody waits long for it
		sold, err := p.refreshCatalogue(context.Background())
		if err != nil {
			panic(err)
		}
		if sold.onDemand != nil {
			return sold
		}
	}
})

// TestMain reads the catalogue outside of every synctest bubble.
func TestMain(m *testing.M) {
	soldInTheRegion()
	os.Exit(m.Run())
}

// calls counts the calls of an action.
func (c *cloud) calls(action string) int {
	n := 0
	for _, call := range c.aws.Calls() {
		if call.Action == action {
			n++
		}
	}
	return n
}

// demoClass is the class that people have.
func demoClass() *awsv1.EC2NodeClass {
	return &awsv1.EC2NodeClass{
		ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "5f0e8c1e-0000-4000-8000-000000000001", Generation: 1},
		Spec: awsv1.EC2NodeClassSpec{
			Role:                       "KarpenterNodeRole-demo",
			AMISelectorTerms:           []awsv1.AMISelectorTerm{{Alias: "al2023@v20260318"}},
			SubnetSelectorTerms:        []awsv1.SubnetSelectorTerm{{Tags: map[string]string{"karpenter.sh/discovery": "demo"}}},
			SecurityGroupSelectorTerms: []awsv1.SecurityGroupSelectorTerm{{Tags: map[string]string{"karpenter.sh/discovery": "demo"}}},
		},
	}
}

// ready resolves the class.
func (c *cloud) ready(t *testing.T, class *awsv1.EC2NodeClass) *awsv1.EC2NodeClass {
	t.Helper()
	status, err := c.Resolve(t.Context(), class)
	if err != nil {
		t.Fatalf("Resolve: %v", err)
	}
	class = class.DeepCopy()
	class.Status = *status
	if !class.StatusConditions().IsTrue("Ready") {
		t.Fatalf("the class is not ready: %+v", status.Conditions)
	}
	return class
}

func (c *cloud) typeNamed(t *testing.T, class *awsv1.EC2NodeClass, name string) *cloudprovider.InstanceType {
	t.Helper()
	types, err := c.InstanceTypes(class)
	if err != nil {
		t.Fatalf("InstanceTypes: %v", err)
	}
	i := slices.IndexFunc(types, func(it *cloudprovider.InstanceType) bool { return it.Name == name })
	if i < 0 {
		t.Fatalf("InstanceTypes has no %s among %d", name, len(types))
	}
	return types[i]
}

// options are the offerings of the named types with the capacity type, by the order of names.
func (c *cloud) options(t *testing.T, class *awsv1.EC2NodeClass, capacityType string, names ...string) []cloudprovider.LaunchOption {
	t.Helper()
	var options []cloudprovider.LaunchOption
	for _, name := range names {
		it := c.typeNamed(t, class, name)
		for _, offering := range it.Offerings {
			if offering.CapacityType == capacityType {
				options = append(options, cloudprovider.LaunchOption{InstanceType: it, Offering: offering})
			}
		}
	}
	return options
}

func launchRequest(class *awsv1.EC2NodeClass, token string, options []cloudprovider.LaunchOption) cloudprovider.LaunchRequest {
	return cloudprovider.LaunchRequest{
		Token: token, Group: "group-" + token, Count: 1, Claims: []string{"default-abcde"}, NodePool: "default", NodeClass: class, Options: options,
		Labels: map[string]string{"karpenter.sh/nodepool": "default", "team": "a"},
		Taints: []v1.Taint{{Key: "karpenter.sh/unregistered", Effect: v1.TaintEffectNoExecute}},
	}
}

func (c *cloud) launch(t *testing.T, req cloudprovider.LaunchRequest) *cloudprovider.LaunchResult {
	t.Helper()
	result, err := c.Launch(context.WithoutCancel(t.Context()), req)
	if err != nil {
		t.Fatalf("Launch: %v", err)
	}
	return result
}

func readPublished(t *testing.T, name string) map[string]map[string]string {
	t.Helper()
	file, err := os.Open("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	reader, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	published := map[string]map[string]string{}
	if err := json.NewDecoder(reader).Decode(&published); err != nil {
		t.Fatal(err)
	}
	return published
}

// wideOptions are the 60 cheapest types with at least one CPU to spare, in every zone.
func wideOptions(t testing.TB, c *cloud) []cloudprovider.LaunchOption {
	t.Helper()
	types, err := c.InstanceTypes(demoClass())
	if err != nil {
		t.Fatal(err)
	}
	byPrice := slices.Clone(types)
	slices.SortStableFunc(byPrice, func(a, b *cloudprovider.InstanceType) int {
		return cmp.Compare(a.Offerings[0].Price, b.Offerings[0].Price)
	})
	var options []cloudprovider.LaunchOption
	for _, it := range byPrice {
		if it.Allocatable.Cpu().MilliValue() < 1500 || it.Labels[v1.LabelArchStable] != "amd64" || len(options) >= 3*60 {
			continue
		}
		for _, offering := range it.Offerings {
			if offering.CapacityType == onDemand {
				options = append(options, cloudprovider.LaunchOption{InstanceType: it, Offering: offering})
			}
		}
	}
	return options
}
