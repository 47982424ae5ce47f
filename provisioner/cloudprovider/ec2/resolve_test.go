// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/fakeaws"
	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
)

func TestFirstResolve(t *testing.T) {
	t.Parallel()
	c := newCloud(t)
	c.catalogue = nil
	if _, err := c.InstanceTypes(demoClass()); !errors.Is(err, cloudprovider.ErrNotReady) {
		t.Errorf("InstanceTypes before Resolve: %v", err)
	}
	start := time.Now()
	class := c.ready(t, demoClass())
	t.Logf("first Resolve: %v, %d calls", time.Since(start), len(c.aws.Calls()))
	types, err := c.InstanceTypes(class)
	if err != nil || len(types) < 1000 {
		t.Fatalf("InstanceTypes: %d types, %v", len(types), err)
	}
	for _, it := range types {
		for _, offering := range it.Offerings {
			if offering.Price <= 0 || !offering.Available || offering.ZoneID == "" || !slices.Contains([]string{"spot", "on-demand"}, offering.CapacityType) {
				t.Fatalf("%s: %+v", it.Name, offering)
			}
		}
	}
	if got := c.typeNamed(t, class, "m5.large").Offerings; len(got) != 6 || got[0].Price != 0.096 {
		t.Errorf("m5.large: %+v, want on-demand and spot in three zones at 0.096", got)
	}
	status := class.Status
	if len(status.Subnets) != 3 || status.Subnets[0].ZoneID == "" || len(status.SecurityGroups) != 1 || len(status.AMIs) != 5 || status.InstanceProfile == "" {
		t.Errorf("status: %+v", status)
	}
	if n := len(c.aws.Calls()); n != 0 {
		c.ready(t, class)
		if again := len(c.aws.Calls()); again != n {
			t.Errorf("a second Resolve at once made %d calls", again-n)
		}
	}
}

func TestConditions(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		change    func(*awsv1.EC2NodeClass)
		condition string
		reason    string
		message   string // a part of it
	}{
		"subnets":      {func(c *awsv1.EC2NodeClass) { c.Spec.SubnetSelectorTerms[0].Tags["x"] = "y" }, "SubnetsReady", "SubnetsNotFound", "karpenter.sh/discovery=demo,x=y"},
		"groups":       {func(c *awsv1.EC2NodeClass) { c.Spec.SecurityGroupSelectorTerms[0].Name = "none" }, "SecurityGroupsReady", "SecurityGroupsNotFound", "name none"},
		"version":      {func(c *awsv1.EC2NodeClass) { c.Spec.AMISelectorTerms[0].Alias = "al2023@v19990101" }, "AMIsReady", "AMINotFound", "al2023@v19990101 for Kubernetes 1.37"},
		"image id":     {func(c *awsv1.EC2NodeClass) { customImage(c, awsv1.AMISelectorTerm{ID: "ami-0"}) }, "AMIsReady", "AMINotFound", "id ami-0"},
		"alias family": {func(c *awsv1.EC2NodeClass) { c.Spec.AMISelectorTerms[0].Alias = "al2@latest" }, "AMIsReady", "UnsupportedAlias", "amiSelectorTerms[0].alias \"al2@latest\": family al2 is not supported"},
		"windows":      {func(c *awsv1.EC2NodeClass) { c.Spec.AMISelectorTerms[0].Alias = "windows2022@latest" }, "AMIsReady", "UnsupportedAlias", "windows2022"},
		"two families": {func(c *awsv1.EC2NodeClass) { c.Spec.AMIFamily = aws.String("Bottlerocket") }, "AMIsReady", "UnsupportedAlias", "is not of family Bottlerocket"},
		"bad alias":    {func(c *awsv1.EC2NodeClass) { c.Spec.AMISelectorTerms[0].Alias = "al2023" }, "AMIsReady", "UnsupportedAlias", "al2023"},
		"family":       {func(c *awsv1.EC2NodeClass) { c.Spec.AMIFamily = aws.String("Windows2022") }, "AMIsReady", "UnsupportedAMIFamily", "Windows2022"},
		"role":         {func(c *awsv1.EC2NodeClass) { c.Spec.Role = "gone" }, "InstanceProfileReady", "InstanceProfileNotFound", "gone"},
		"kubelet": {func(c *awsv1.EC2NodeClass) {
			c.Spec.Kubelet = &awsv1.KubeletConfiguration{EvictionHard: map[string]string{"memory.available": "many"}}
		}, "ValidationSucceeded", "InvalidKubeletConfiguration", "evictionHard[memory.available]"},
		"tags": {func(c *awsv1.EC2NodeClass) { c.Spec.Tags = map[string]string{"karpenter.sh/nodepool": "x"} }, "ValidationSucceeded", "TagValidationFailed", "karpenter.sh/nodepool"},
		"reservation": {func(c *awsv1.EC2NodeClass) {
			c.Spec.CapacityReservationSelectorTerms = []awsv1.CapacityReservationSelectorTerm{{ID: "cr-1"}}
		}, "ValidationSucceeded", "UnsupportedField", "spec.capacityReservationSelectorTerms"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCloud(t, func(o *fakeaws.Options) { o.Roles = []string{"KarpenterNodeRole-demo"} })
			class := demoClass()
			c.ready(t, class)
			class.Generation++
			tc.change(class)
			status, err := c.Resolve(t.Context(), class)
			if err != nil {
				t.Fatalf("Resolve: %v", err)
			}
			class.Status = *status
			got := class.StatusConditions().Get(tc.condition)
			if got.Status != metav1.ConditionFalse || got.Reason != tc.reason || !strings.Contains(got.Message, tc.message) {
				t.Errorf("%s is %s %s %q, want False %s …%s…", tc.condition, got.Status, got.Reason, got.Message, tc.reason, tc.message)
			}
			if root := class.StatusConditions().Root(); root.Status != metav1.ConditionFalse {
				t.Errorf("Ready is %s: %s", root.Status, root.Message)
			}
			if _, err := c.InstanceTypes(class); !errors.Is(err, cloudprovider.ErrNotReady) {
				t.Errorf("InstanceTypes: %v", err)
			}
		})
	}
}

func customImage(class *awsv1.EC2NodeClass, term awsv1.AMISelectorTerm) {
	class.Spec.AMIFamily = aws.String("AL2023")
	class.Spec.AMISelectorTerms = []awsv1.AMISelectorTerm{term}
}

func TestImageTerms(t *testing.T) {
	t.Parallel()
	id := func(c *cloud) string {
		value, err := c.parameter(context.Background(), al2023Path("1.37", "v20260304", variant{"x86_64", "standard"}), true)
		if err != nil || value == "" {
			t.Fatalf("parameter: %q, %v", value, err)
		}
		return value
	}
	const name = "amazon-eks-node-al2023-x86_64-standard-1.37-v20260304"
	cases := map[string]struct {
		term func(*cloud) awsv1.AMISelectorTerm
		want []string // names
	}{
		"latest": {func(*cloud) awsv1.AMISelectorTerm { return awsv1.AMISelectorTerm{Alias: "al2023@latest"} }, []string{
			"amazon-eks-node-al2023-arm64-nvidia-1.37-v20260415", "amazon-eks-node-al2023-arm64-standard-1.37-v20260415", "amazon-eks-node-al2023-x86_64-neuron-1.37-v20260415",
			"amazon-eks-node-al2023-x86_64-nvidia-1.37-v20260415", "amazon-eks-node-al2023-x86_64-standard-1.37-v20260415",
		}},
		"id": {func(c *cloud) awsv1.AMISelectorTerm { return awsv1.AMISelectorTerm{ID: id(c)} }, []string{name}},
		"name": {func(*cloud) awsv1.AMISelectorTerm {
			return awsv1.AMISelectorTerm{Name: "amazon-eks-node-al2023-x86_64-standard-1.37-*"}
		}, []string{"amazon-eks-node-al2023-x86_64-standard-1.37-v20260415"}},
		"parameter": {func(*cloud) awsv1.AMISelectorTerm {
			return awsv1.AMISelectorTerm{SSMParameter: al2023Path("1.37", "v20260304", variant{"x86_64", "standard"})}
		}, []string{name}},
		"owner": {func(*cloud) awsv1.AMISelectorTerm { return awsv1.AMISelectorTerm{Name: name, Owner: "self"} }, nil},
	}
	for title, tc := range cases {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			c := newCloud(t)
			spec := &awsv1.EC2NodeClassSpec{AMISelectorTerms: []awsv1.AMISelectorTerm{tc.term(c)}}
			images, err := c.readImages(t.Context(), spec, &clusterFacts{version: "1.37"})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, i := range images {
				got = append(got, i.Name)
			}
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("images (-want +got):\n%s", diff)
			}
		})
	}
}

func TestVariants(t *testing.T) {
	t.Parallel()
	c := newCloud(t)
	class := c.ready(t, demoClass())
	p := c.classes[class.Name]
	for name, want := range map[string]string{"m5.large": "x86_64-standard", "m6g.large": "arm64-standard", "g5.xlarge": "x86_64-nvidia", "g5g.xlarge": "arm64-nvidia", "inf2.xlarge": "x86_64-neuron"} {
		if got := p.launchable[name].image.Name; !strings.Contains(got, want) {
			t.Errorf("%s boots %q, want a %s image", name, got, want)
		}
	}
	if _, ok := p.launchable["a1.large"]; ok {
		t.Error("a1 is listed, though AL2023 does not boot on it")
	}
}

func TestResolveKeepsWhatItKnows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(t)
		class := c.ready(t, demoClass())
		for _, action := range []string{"DescribeSubnets", "DescribeSecurityGroups", "DescribeImages", "DescribeCluster", "GetInstanceProfile"} {
			c.aws.SetFault(fakeaws.Rule{Action: action, Code: "RequestLimitExceeded", Status: 503})
		}
		time.Sleep(time.Hour)
		status, err := c.Resolve(t.Context(), class)
		if err == nil {
			t.Error("no error, though AWS throttles")
		}
		if diff := cmp.Diff(class.Status, *status); diff != "" {
			t.Errorf("status (-before +after):\n%s", diff)
		}
		if _, err := c.InstanceTypes(class); err != nil {
			t.Errorf("InstanceTypes: %v", err)
		}
		fresh := restart(c)
		status, err = fresh.Resolve(t.Context(), demoClass())
		if err == nil {
			t.Error("no error after a restart, though AWS throttles")
		}
		class.Status = *status
		if got := class.StatusConditions().Get("SubnetsReady"); got.Status != metav1.ConditionUnknown || !strings.Contains(got.Message, "RequestLimitExceeded") {
			t.Errorf("SubnetsReady: %+v", got)
		}
		c.aws.DeleteFault("")
		fresh.ready(t, demoClass())
	})
}

func TestResolveEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(t)
		c.aws.SetFault(fakeaws.Rule{Action: "DescribeSubnets", Delay: metav1.Duration{Duration: time.Hour}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if _, err := c.Resolve(ctx, demoClass()); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > time.Second {
			t.Errorf("Resolve: %v after %v", err, time.Since(start))
		}
		if _, err := c.Resolve(t.Context(), demoClass()); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > time.Minute {
			t.Errorf("Resolve without a deadline: %v after %v", err, time.Since(start))
		}
		c.aws.Close()
	})
}

func TestInstanceProfiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(t)
		class := c.ready(t, demoClass())
		first := class.Status.InstanceProfile
		lost := demoClass() // a status that was never written
		if again := restart(c).ready(t, lost).Status.InstanceProfile; again != first {
			t.Errorf("two profiles for one class: %s, %s", first, again)
		}
		class.Generation, class.Spec.Role = 2, "team/other-role" // a role with a path
		second := c.ready(t, class)
		if second.Status.InstanceProfile == first {
			t.Error("another role, the same profile")
		}
		for range 3 {
			time.Sleep(time.Hour)
			if again := c.ready(t, second).Status.InstanceProfile; again != second.Status.InstanceProfile {
				t.Errorf("the profile changed to %s", again)
			}
		}
		if n := c.calls("CreateInstanceProfile"); n != 2 {
			t.Errorf("%d profiles created, want 2", n)
		}
		class.Generation, class.Spec.Role, class.Spec.InstanceProfile = 3, "", aws.String("mine")
		if got := c.ready(t, class).Status.InstanceProfile; got != "mine" {
			t.Errorf("spec.instanceProfile: got %s", got)
		}
		if err := c.Forget(t.Context(), "default"); err != nil {
			t.Fatal(err)
		}
		if n := c.calls("DeleteInstanceProfile"); n != 2 {
			t.Errorf("Forget deleted %d profiles, want 2", n)
		}
	})
}

func TestLaunchWaitsForTheProfile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		settings := fakeaws.DefaultSettings()
		settings.ProfileLag = metav1.Duration{Duration: 10 * time.Second}
		c := newCloud(t, func(o *fakeaws.Options) { o.Settings = &settings })
		class := c.ready(t, demoClass())
		req := launchRequest(class, "g1-1", c.options(t, class, onDemand, "m5.large"))
		first := c.launch(t, req)
		fresh := restart(c)
		fresh.ready(t, class)
		if again := fresh.launch(t, req); again.Instances[0].ID != first.Instances[0].ID || len(c.aws.Instances()) != 1 {
			t.Errorf("the replay gave %+v, first %+v", again.Instances, first.Instances)
		}
	})
}

func TestForget(t *testing.T) {
	t.Parallel()
	c := newCloud(t)
	class := c.ready(t, demoClass())
	other := demoClass()
	other.Name, other.UID = "other", "5f0e8c1e-0000-4000-8000-000000000002"
	other = c.ready(t, other)
	for i, of := range []*awsv1.EC2NodeClass{class, other} {
		c.launch(t, launchRequest(of, fmt.Sprint("g", i), c.options(t, of, onDemand, "m5.large")))
	}
	if n := len(c.aws.LaunchTemplates()); n != 2 {
		t.Fatalf("%d launch templates, want one per class", n)
	}
	if err := c.Forget(t.Context(), "default"); err != nil {
		t.Fatal(err)
	}
	if left := c.aws.LaunchTemplates(); len(left) != 1 || left[0].Tags["karpenter.k8s.aws/ec2nodeclass"] != "other" {
		t.Errorf("left: %+v", left)
	}
	if _, err := c.InstanceTypes(class); !errors.Is(err, cloudprovider.ErrNotReady) {
		t.Errorf("InstanceTypes of a forgotten class: %v", err)
	}
	if n := c.calls("DeleteInstanceProfile"); n != 1 {
		t.Errorf("%d profiles deleted, want 1", n)
	}
}
