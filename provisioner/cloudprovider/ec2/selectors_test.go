// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/fakeaws"
)

const ourAccount, otherAccount = "111122223333", "999988887777"

// day is the creation date of a test's image.
func day(n int) time.Time { return time.Date(2026, time.March, n, 0, 0, 0, 0, time.UTC) }

// Each image is newer than the ones before it, so that a term that selects too much is seen.
func ourImages(c *cloud) {
	for _, spec := range []fakeaws.Image{
		{Name: "node-1", CreatedAt: day(1), Tags: map[string]string{"team": "a", "stage": "prod"}},
		{Name: "node-2", CreatedAt: day(2), Tags: map[string]string{"team": "a", "stage": "test"}},
		{Name: "node-arm-2", Architecture: "arm64", CreatedAt: day(2), Tags: map[string]string{"team": "a"}},
		{Name: "mac-9", Architecture: "x86_64_mac", CreatedAt: day(9), Tags: map[string]string{"team": "a"}},
		{Name: "other-3", CreatedAt: day(3), Tags: map[string]string{"team": "b"}},
		{Name: "node-4", CreatedAt: day(4), Owner: otherAccount, Tags: map[string]string{"team": "a"}},
		{Name: "node-5", CreatedAt: day(5), State: "pending", Tags: map[string]string{"team": "a"}},
		{Name: "node-6", CreatedAt: day(6), State: "failed", Tags: map[string]string{"team": "a"}},
		{Name: "node-7", CreatedAt: day(7), State: "disabled", Tags: map[string]string{"team": "a"}},
		{Name: "old-8", CreatedAt: day(8), DeprecatedAt: day(9), Tags: map[string]string{"team": "c"}},
		{Name: "fresh-1", CreatedAt: day(1), Tags: map[string]string{"team": "c"}},
		{Name: "retired-1", CreatedAt: day(1), DeprecatedAt: day(2), Tags: map[string]string{"team": "d"}},
		{Name: "retired-2", CreatedAt: day(2), DeprecatedAt: day(3), Tags: map[string]string{"team": "d"}},
		{Name: "same-a", CreatedAt: day(1), Tags: map[string]string{"team": "e"}},
		{Name: "same-b", CreatedAt: day(1), Tags: map[string]string{"team": "e"}},
	} {
		id := c.aws.SetImage(spec)
		c.aws.SetParameter("/ours/"+spec.Name, id)
	}
	c.aws.SetParameter("/ours/text", "not an image")
}

func idOf(t *testing.T, c *cloud, name string) string {
	t.Helper()
	id, err := c.parameter(t.Context(), "/ours/"+name, false)
	if err != nil || id == "" {
		t.Fatalf("image %s: %q, %v", name, id, err)
	}
	return id
}

func TestImageSelectors(t *testing.T) {
	t.Parallel()
	tags := func(pairs ...string) map[string]string {
		all := map[string]string{}
		for _, pair := range pairs {
			key, value, _ := strings.Cut(pair, "=")
			all[key] = value
		}
		return all
	}
	type terms []awsv1.AMISelectorTerm
	cases := map[string]struct {
		terms func(c *cloud) terms
		want  []string // names, in the status's order
	}{
		"tags are ANDed": {func(*cloud) terms { return terms{{Tags: tags("team=a", "stage=prod")}} }, []string{"node-1"}},
		"any value of a tag": {
			func(*cloud) terms { return terms{{Tags: tags("team=a", "stage=*")}} }, []string{"node-2"},
		},
		"newest available one of each architecture, whoever owns it": {
			func(*cloud) terms { return terms{{Tags: tags("team=a")}} }, []string{"node-4", "node-arm-2"},
		},
		"tags of an owner": {
			func(*cloud) terms { return terms{{Tags: tags("team=a"), Owner: ourAccount}} }, []string{"node-2", "node-arm-2"},
		},
		"name with wildcard, of ourselves or Amazon": {
			func(*cloud) terms { return terms{{Name: "node-?"}} }, []string{"node-2"},
		},
		"name of an account": {func(*cloud) terms { return terms{{Name: "node-*", Owner: otherAccount}} }, []string{"node-4"}},
		"name and tags":      {func(*cloud) terms { return terms{{Name: "node-*", Tags: tags("stage=prod")}} }, []string{"node-1"}},
		"terms are ORed": {
			func(*cloud) terms { return terms{{Name: "node-1"}, {Tags: tags("team=b")}, {Name: "node-arm-*"}} }, []string{"other-3", "node-arm-2"},
		},
		"ids": {
			func(c *cloud) terms { return terms{{ID: idOf(t, c, "node-1")}, {ID: idOf(t, c, "node-arm-2")}} }, []string{"node-arm-2", "node-1"},
		},
		"an id that is not there, and one that is": {
			func(c *cloud) terms { return terms{{ID: "ami-0123"}, {ID: idOf(t, c, "node-1")}} }, []string{"node-1"},
		},
		"an id counts before an owner": {
			func(c *cloud) terms { return terms{{ID: idOf(t, c, "node-1"), Owner: otherAccount}} }, []string{"node-1"},
		},
		"id of an image that is pending": {func(c *cloud) terms { return terms{{ID: idOf(t, c, "node-5")}} }, nil},
		"parameter":                      {func(*cloud) terms { return terms{{SSMParameter: "/ours/node-1"}} }, []string{"node-1"}},
		"parameters, one of them missing": {
			func(*cloud) terms {
				return terms{{SSMParameter: "/ours/none"}, {SSMParameter: "/ours/text"}, {SSMParameter: "/ours/other-3"}}
			}, []string{"other-3"},
		},
		"deprecated only if there is no other":        {func(*cloud) terms { return terms{{Tags: tags("team=c")}} }, []string{"fresh-1"}},
		"all deprecated: the newest":                  {func(*cloud) terms { return terms{{Tags: tags("team=d")}} }, []string{"retired-2"}},
		"of the same age: the greater name":           {func(*cloud) terms { return terms{{Tags: tags("team=e")}} }, []string{"same-b"}},
		"an architecture that Kubernetes has not":     {func(*cloud) terms { return terms{{Name: "mac-*"}} }, nil},
		"an owner alone does not select all its work": {func(*cloud) terms { return terms{{Owner: "self"}} }, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCloud(t)
			ourImages(c)
			images, err := c.readImages(t.Context(), &awsv1.EC2NodeClassSpec{AMISelectorTerms: tc.terms(c)}, &clusterFacts{version: "1.37"})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, i := range images {
				got = append(got, i.Name)
				if wantDeprecated := i.Name == "retired-2"; i.Deprecated != wantDeprecated {
					t.Errorf("%s: deprecated is %t", i.Name, i.Deprecated)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("images (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSubnetSelectors(t *testing.T) {
	t.Parallel()
	c := newCloud(t, func(o *fakeaws.Options) {
		o.Subnets = []fakeaws.SubnetSpec{
			{Zone: "us-east-1a", CIDR: "10.0.0.0/24"}, {Zone: "us-east-1a", CIDR: "10.0.1.0/25"}, {Zone: "us-east-1b", CIDR: "10.0.2.0/23"}, {Zone: "us-east-1c", CIDR: "10.0.4.0/28"},
		}
	})
	all, err := c.readSubnets(t.Context(), []awsv1.SubnetSelectorTerm{{Tags: map[string]string{"karpenter.sh/discovery": "*"}}})
	if err != nil {
		t.Fatal(err)
	}
	type term = awsv1.SubnetSelectorTerm
	byFree := func(names ...string) []string { return names }
	const large, middle, small, tiny = "demo-private-3", "demo-private-1", "demo-private-2", "demo-private-4" // by free addresses
	id := func(n int) string { return all[n].id }
	ids := map[string]string{id(0): large, id(1): middle, id(2): small, id(3): tiny}
	cases := map[string]struct {
		terms []term
		want  []string
	}{
		"most free addresses first": {[]term{{Tags: map[string]string{"karpenter.sh/discovery": "demo"}}}, byFree(large, middle, small, tiny)},
		"any value":                 {[]term{{Tags: map[string]string{"Name": "*"}}}, byFree(large, middle, small, tiny)},
		"wildcard within a value":   {[]term{{Tags: map[string]string{"Name": "demo-*-1"}}}, byFree(middle)},
		"tags are ANDed":            {[]term{{Tags: map[string]string{"Name": small, "karpenter.sh/discovery": "demo"}}}, byFree(small)},
		"tags that are not there":   {[]term{{Tags: map[string]string{"Name": small, "karpenter.sh/discovery": "other"}}}, nil},
		"terms are ORed":            {[]term{{Tags: map[string]string{"Name": tiny}}, {Tags: map[string]string{"Name": large}}}, byFree(large, tiny)},
		"ids":                       {[]term{{ID: id(2)}, {ID: id(0)}, {ID: "subnet-0"}}, byFree(large, small)},
		"an id counts before tags":  {[]term{{ID: id(2), Tags: map[string]string{"Name": "none"}}}, byFree(small)},
		"found twice":               {[]term{{ID: id(2)}, {Tags: map[string]string{"Name": small}}}, byFree(small)},
		"an empty term":             {[]term{{}}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, err := c.readSubnets(t.Context(), tc.terms)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, s := range found {
				got = append(got, ids[s.id])
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("subnets (-want +got):\n%s", diff)
			}
		})
	}
	class := c.ready(t, demoClass())
	want := []awsv1.Subnet{
		{ID: id(0), Zone: "us-east-1b", ZoneID: "use1-az2"},
		{ID: id(1), Zone: "us-east-1a", ZoneID: "use1-az1"},
		{ID: id(2), Zone: "us-east-1a", ZoneID: "use1-az1"},
		{ID: id(3), Zone: "us-east-1c", ZoneID: "use1-az3"},
	}
	if diff := cmp.Diff(want, class.Status.Subnets); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

func TestSecurityGroupSelectors(t *testing.T) {
	t.Parallel()
	c := newCloud(t)
	type term = awsv1.SecurityGroupSelectorTerm
	read := func(terms ...term) []awsv1.SecurityGroup {
		groups, err := c.readSecurityGroups(t.Context(), terms)
		if err != nil {
			t.Fatal(err)
		}
		return groups
	}
	nodes, standard := read(term{Name: "eks-cluster-sg-demo"})[0], read(term{Name: "default"})[0]
	both := []awsv1.SecurityGroup{nodes, standard}
	slices.SortFunc(both, func(a, b awsv1.SecurityGroup) int { return strings.Compare(a.ID, b.ID) })
	cases := map[string]struct {
		terms []term
		want  []awsv1.SecurityGroup
	}{
		"tags":                            {[]term{{Tags: map[string]string{"karpenter.sh/discovery": "demo"}}}, []awsv1.SecurityGroup{nodes}},
		"any value":                       {[]term{{Tags: map[string]string{"karpenter.sh/discovery": "*", "Name": "nod?s"}}}, []awsv1.SecurityGroup{nodes}},
		"names and ids, by id":            {[]term{{ID: standard.ID}, {Name: nodes.Name}}, both},
		"name with wildcard":              {[]term{{Name: "*"}}, both},
		"a name counts before tags":       {[]term{{Name: "default", Tags: map[string]string{"karpenter.sh/discovery": "demo"}}}, []awsv1.SecurityGroup{standard}},
		"an id counts before a name":      {[]term{{ID: nodes.ID, Name: "default"}}, []awsv1.SecurityGroup{nodes}},
		"none":                            {[]term{{Tags: map[string]string{"a": "b"}}, {ID: "sg-0"}, {Name: "none"}}, nil},
		"the name tag is no group's name": {[]term{{Name: "nodes"}}, nil},
		"an empty term":                   {[]term{{}}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, read(tc.terms...)); diff != "" {
				t.Errorf("groups (-want +got):\n%s", diff)
			}
		})
	}
}

// B103: the newest by date cannot be launched, be it pending, failed or gone.
func TestB103NewestImageIsNotAvailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(t)
		ourImages(c)
		class := demoClass()
		customImage(class, awsv1.AMISelectorTerm{Name: "node-*", Owner: "self"})
		class = c.ready(t, class)
		names := func() []string {
			var list []string
			for _, ami := range class.Status.AMIs {
				list = append(list, ami.Name)
			}
			return list
		}
		if diff := cmp.Diff([]string{"node-2", "node-arm-2"}, names()); diff != "" {
			t.Errorf("images (-want +got):\n%s", diff)
		}
		c.aws.SetImage(fakeaws.Image{Name: "node-5", State: "available"}) // it has become ready
		time.Sleep(imagesTTL)
		class = c.ready(t, class)
		if diff := cmp.Diff([]string{"node-5", "node-arm-2"}, names()); diff != "" {
			t.Errorf("images, later (-want +got):\n%s", diff)
		}
		// A neighbour: the one in use is deregistered, and nobody launches meanwhile.
		c.aws.SetImage(fakeaws.Image{Name: "node-5", State: "deregistered"})
		time.Sleep(imagesTTL)
		class = c.ready(t, class)
		if diff := cmp.Diff([]string{"node-2", "node-arm-2"}, names()); diff != "" {
			t.Errorf("images after the newest was deregistered (-want +got):\n%s", diff)
		}
	})
}

// An image that no type of the region can boot: the class says which and what it wants.
func TestImageThatFitsNoType(t *testing.T) {
	t.Parallel()
	c := newCloud(t)
	ourImages(c)
	class := demoClass()
	customImage(class, awsv1.AMISelectorTerm{Name: "node-arm-2"})
	arm := c.ready(t, class)
	types, err := c.InstanceTypes(arm)
	if err != nil {
		t.Fatal(err)
	}
	for _, it := range types {
		if it.Labels[v1.LabelArchStable] != "arm64" {
			t.Fatalf("%s is %s", it.Name, it.Labels[v1.LabelArchStable])
		}
	}
	sold := *c.catalogue
	sold.version++
	sold.types = map[string]*hardware{"m5.large": sold.types["m5.large"]}
	c.catalogue = &sold
	class.Generation++
	status, err := c.Resolve(t.Context(), class)
	if err != nil {
		t.Fatal(err)
	}
	class.Status = *status
	got := class.StatusConditions().Get(awsv1.ConditionTypeValidationSucceeded)
	want := "no instance type of the region fits the requirements of " + status.AMIs[0].ID + " (kubernetes.io/arch In arm64)"
	if got.Reason != "NoInstanceTypeForAMI" || got.Message != want {
		t.Errorf("got %s %q, want %q", got.Reason, got.Message, want)
	}
}
