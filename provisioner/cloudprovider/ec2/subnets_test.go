// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/fakeaws"
	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
)

// subnetsOf makes a cloud with two subnets in zone a and two in zone b, of 251 addresses each, and returns their ids.
func subnetsOf(t *testing.T, change ...func(*fakeaws.Options)) (*cloud, *awsv1.EC2NodeClass, []string) {
	t.Helper()
	c := newCloud(t, append([]func(*fakeaws.Options){func(o *fakeaws.Options) {
		o.Subnets = []fakeaws.SubnetSpec{
			{Zone: "us-east-1a", CIDR: "10.0.0.0/24"},
			{Zone: "us-east-1a", CIDR: "10.0.1.0/24"},
			{Zone: "us-east-1b", CIDR: "10.0.2.0/24"},
			{Zone: "us-east-1b", CIDR: "10.0.3.0/24"},
		}
	}}, change...)...)
	class := c.ready(t, demoClass())
	found := slices.Clone(c.classes[class.Name].subnets)
	slices.SortFunc(found, func(a, b subnet) int { return strings.Compare(a.zone+a.id, b.zone+b.id) })
	var ids []string
	for _, s := range found {
		ids = append(ids, s.id)
	}
	return c, class, ids
}

// leave has subnets with so many free addresses, as they are now and as they are described.
func (c *cloud) leave(free map[string]int) {
	settings := c.aws.Settings()
	settings.FreeAddresses = free
	c.aws.SetSettings(settings)
}

// again resolves the class anew.
func (c *cloud) again(t *testing.T, class *awsv1.EC2NodeClass) {
	t.Helper()
	time.Sleep(resolveTTL)
	c.ready(t, class)
}

// Every subnet but one is full: the launch lands there, whether EC2 has told in time or not.
func TestTheOneSubnetThatIsNotFull(t *testing.T) {
	for name, told := range map[string]bool{"as described": true, "not described yet": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, class, ids := subnetsOf(t)
				c.leave(map[string]int{ids[0]: 0, ids[1]: 0, ids[2]: 0})
				if told {
					c.again(t, class)
				}
				options := c.options(t, class, onDemand, "m5.large", "c5.large")
				var result *cloudprovider.LaunchResult
				tries := 0
				for _, token := range []string{"a", "b", "c", "d"} { // as the claim's attempts do
					tries++
					var err error
					result, err = c.Launch(t.Context(), launchRequest(class, token, options))
					if err == nil {
						break
					}
					failure := wantLaunchError(t, err)
					if failure.Failure != cloudprovider.InsufficientCapacity {
						t.Fatalf("Launch: %v", err)
					}
					options = slices.DeleteFunc(options, func(o cloudprovider.LaunchOption) bool {
						return slices.ContainsFunc(failure.Failures, func(of cloudprovider.OfferingFailure) bool {
							return !of.Passing && of.InstanceType == o.InstanceType.Name && of.Zone == o.Offering.Zone
						})
					})
				}
				if result == nil || len(result.Instances) != 1 || result.Instances[0].SubnetID != ids[3] {
					t.Fatalf("after %d launches: %+v, want a machine in %s", tries, result, ids[3])
				}
				if told && tries > 1 {
					t.Errorf("%d launches although the full subnets were known", tries)
				}
			})
		})
	}
}

// All subnets are full: nobody asks EC2, and launch and planner say which subnets and how many addresses they have.
func TestAllSubnetsAreFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, class, ids := subnetsOf(t)
		options := c.options(t, class, onDemand, "m5.large")
		c.leave(map[string]int{ids[0]: 0, ids[1]: 0, ids[2]: 0, ids[3]: 0})
		c.again(t, class)
		_, err := c.Launch(t.Context(), launchRequest(class, "a", options))
		failure := wantLaunchError(t, err)
		if failure.Failure != cloudprovider.InsufficientCapacity || c.calls("CreateFleet") != 0 {
			t.Errorf("Launch: %v, %d calls of CreateFleet; want %s, none", err, c.calls("CreateFleet"), cloudprovider.InsufficientCapacity)
		}
		for _, id := range ids {
			if want := id + " ("; !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), ") has 0") {
				t.Errorf("the error names no %q and its free addresses: %v", id, err)
			}
		}
		for _, offering := range c.typeNamed(t, class, "m5.large").Offerings {
			if offering.Available || !strings.Contains(offering.Unavailable, "no free addresses: subnet "+ids[0]) && !strings.Contains(offering.Unavailable, "no free addresses: subnet "+ids[2]) {
				t.Errorf("the offering in %s is available: %t, %q", offering.Zone, offering.Available, offering.Unavailable)
			}
		}
		c.leave(nil)
		c.again(t, class)
		c.launch(t, launchRequest(class, "b", options))
	})
}

// Pods draw addresses after their machine: a zone with addresses for the machine alone is left to those who need it.
func TestPodsNeedAddressesToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, class, ids := subnetsOf(t)
		c.leave(map[string]int{ids[0]: 20, ids[1]: 5})
		c.again(t, class)
		both := c.options(t, class, onDemand, "m5.large") // 29 pods
		if got := c.launch(t, launchRequest(class, "any", both)).Instances[0]; got.Zone != "us-east-1b" {
			t.Errorf("launched in %s, where there are 20 addresses for 29 pods", got.Zone)
		}
		here := slices.DeleteFunc(slices.Clone(both), func(o cloudprovider.LaunchOption) bool { return o.Offering.Zone != "us-east-1a" })
		if got := c.launch(t, launchRequest(class, "pinned", here)).Instances[0]; got.SubnetID != ids[0] {
			t.Errorf("launched in %s, want %s: the best of the zone", got.SubnetID, ids[0])
		}
	})
}

// Launches in flight count, of every class; what they did not take comes back; EC2's next count has what they took.
func TestAddressesInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, class, ids := subnetsOf(t)
		other := demoClass()
		other.Name, other.UID = "other", "5f0e8c1e-0000-4000-8000-000000000002"
		other = c.ready(t, other)
		c.leave(map[string]int{ids[0]: 60, ids[1]: 50, ids[2]: 0, ids[3]: 0})
		time.Sleep(resolveTTL)
		class, other = c.ready(t, class), c.ready(t, other)
		options := c.options(t, class, onDemand, "m5.large")
		free := func(id string) room {
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.roomsOf(c.classes[class.Name])[id]
		}
		c.aws.SetFault(fakeaws.Rule{Action: "CreateFleet", Delay: metav1.Duration{Duration: 5 * time.Second}, Times: 1})
		first := make(chan string, 1)
		go func() { first <- c.launch(t, launchRequest(class, "first", options)).Instances[0].SubnetID }()
		synctest.Wait()
		if got, want := free(ids[0]), (room{59, 31}); got != want {
			t.Errorf("with 29 pods on their way the subnet has %+v, want %+v", got, want)
		}
		if got := c.launch(t, launchRequest(other, "second", options)).Instances[0].SubnetID; got != ids[1] {
			t.Errorf("the other class launched in %s, want %s: the first is about to take the rest", got, ids[1])
		}
		if got := <-first; got != ids[0] {
			t.Errorf("the first landed in %s, want %s", got, ids[0])
		}
		c.again(t, class)
		if got, want := free(ids[0]), (room{59, 31}); got != want {
			t.Errorf("counted anew %+v, want %+v: the machine is seen, its pods are not", got, want)
		}
		time.Sleep(podsComeFor)
		if got, want := free(ids[0]), (room{59, 59}); got != want {
			t.Errorf("when all pods have come %+v, want EC2's own %+v", got, want)
		}
		c.aws.SetFault(fakeaws.Rule{Action: "CreateFleet", Code: "InsufficientInstanceCapacity", PerPool: true, Times: 1})
		if _, err := c.Launch(t.Context(), launchRequest(class, "none", options)); err == nil {
			t.Error("there was capacity")
		}
		if got, want := free(ids[0]), (room{59, 59}); got != want {
			t.Errorf("after a launch of nothing %+v, want %+v", got, want)
		}
	})
}

func TestPodAddresses(t *testing.T) {
	t.Parallel()
	c := newCloud(t)
	class := c.ready(t, demoClass())
	h := c.classes[class.Name].launchable["m5.large"].hardware
	for name, tc := range map[string]struct {
		spec   awsv1.EC2NodeClassSpec
		maxPod *int32
		cidr   string
		want   int64
	}{
		"as many as pods":            {want: 28},
		"fewer pods":                 {maxPod: aws.Int32(10), want: 9},
		"more pods than addresses":   {maxPod: aws.Int32(110), want: 0},
		"prefixes":                   {spec: awsv1.EC2NodeClassSpec{IPPrefixCount: aws.Int32(2)}, maxPod: aws.Int32(110), want: 32},
		"IPv6":                       {cidr: "fd00:10:96::/108", want: 0},
		"IPv6 with prefixes":         {spec: awsv1.EC2NodeClassSpec{IPPrefixCount: aws.Int32(2)}, cidr: "fd00:10:96::/108", want: 0},
		"no more pods than machines": {maxPod: aws.Int32(0), want: 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			of := &shapedClass{spec: tc.spec, maxPods: tc.maxPod, cidr: tc.cidr}
			if got := of.class().podAddresses(h); got != tc.want {
				t.Errorf("podAddresses = %d, want %d", got, tc.want)
			}
		})
	}
}

type shapedClass struct {
	spec    awsv1.EC2NodeClassSpec
	maxPods *int32
	cidr    string
}

func (c *shapedClass) class() *class {
	out := &class{object: &awsv1.EC2NodeClass{Spec: c.spec}, cluster: &clusterFacts{serviceCIDR: c.cidr}}
	out.shape.kubelet.MaxPods = c.maxPods
	return out
}

// B56: classes with other subnets launch into their own, and what EC2 refuses one of them is not held against the
// other's subnets.
func TestClassesKeepTheirSubnets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, ids := subnetsOf(t)
		classes := map[string]*awsv1.EC2NodeClass{}
		for i, id := range ids {
			class := demoClass()
			class.Name, class.UID = "of-"+id, class.UID[:len(class.UID)-1]+types.UID("abcd"[i:i+1])
			class.Spec.SubnetSelectorTerms = []awsv1.SubnetSelectorTerm{{ID: id}}
			classes[id] = c.ready(t, class)
		}
		c.leave(map[string]int{ids[0]: 0})
		for range 2 { // the second time the refusal is known
			got := map[string]string{}
			for _, id := range slices.Sorted(maps.Keys(classes)) {
				options := c.options(t, classes[id], onDemand, "m5.large")
				result, err := c.Launch(t.Context(), launchRequest(classes[id], "t"+id+time.Now().String(), options))
				if err == nil {
					got[id] = result.Instances[0].SubnetID
				}
			}
			if want := map[string]string{ids[1]: ids[1], ids[2]: ids[2], ids[3]: ids[3]}; !maps.Equal(got, want) {
				t.Errorf("launched in %v, want %v", got, want)
			}
			time.Sleep(time.Second)
		}
		for _, offering := range c.typeNamed(t, classes[ids[1]], "m5.large").Offerings {
			if !offering.Available {
				t.Errorf("%s is out for a class whose subnet has addresses: %s", offering.Zone, offering.Unavailable)
			}
		}
		for _, offering := range c.typeNamed(t, classes[ids[0]], "m5.large").Offerings {
			if offering.Available {
				t.Errorf("%s is available for the class whose only subnet is full", offering.Zone)
			}
		}
	})
}
