// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/fakeaws"
	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
)

// Names are within EC2's and IAM's limits, and distinct, whatever the cluster is called.
func TestNamesOfLongClusters(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("c", 99)
	names := map[string]string{}
	for _, cluster := range []string{"d", long + "a", long + "b"} {
		server := fakeaws.New(fakeaws.Options{ClusterName: cluster})
		t.Cleanup(server.Close)
		p := New(Options{ClusterName: cluster, AWS: server.AWSConfig("AKIATEST")})
		p.catalogue = soldInTheRegion()
		c := &cloud{Provider: p, aws: server}
		class := demoClass()
		class.Name = strings.Repeat("n", 253) // as long as Kubernetes allows
		class.Spec.SubnetSelectorTerms[0].Tags["karpenter.sh/discovery"] = cluster
		class.Spec.SecurityGroupSelectorTerms[0].Tags["karpenter.sh/discovery"] = cluster
		class = c.ready(t, class)
		c.launch(t, launchRequest(class, "g1-1", c.options(t, class, onDemand, "m5.large")))
		for _, template := range server.LaunchTemplates() {
			if n := len(template.Name); n < 3 || n > 128 || !strings.HasPrefix(template.Name, "karpenter.k8s.aws/") {
				t.Errorf("%s: launch template %q has %d characters", cluster, template.Name, n)
			}
			if other := names[template.Name]; other != "" {
				t.Errorf("clusters %s and %s share %s", cluster, other, template.Name)
			}
			names[template.Name] = cluster
			for key, value := range template.Tags {
				if len(key) > 128 || len(value) > 256 {
					t.Errorf("%s: tag %s=%s is too long", cluster, key, value)
				}
			}
		}
		if profile := class.Status.InstanceProfile; len(profile) > 128 || !strings.HasPrefix(profile, cluster+"_") {
			t.Errorf("%s: instance profile %q has %d characters", cluster, profile, len(profile))
		}
	}
	if len(names) != 3 {
		t.Errorf("%d launch templates, want one a cluster", len(names))
	}
}

// What another process has created serves as well; what differs in anything is another template.
func TestTemplatesAreReused(t *testing.T) {
	t.Parallel()
	c := newCloud(t)
	class := c.ready(t, demoClass())
	options := c.options(t, class, onDemand, "m5.large")
	c.launch(t, launchRequest(class, "g1-1", options))
	before := c.aws.LaunchTemplates()

	after := restart(c)
	after.ready(t, class)
	after.launch(t, launchRequest(class, "g2-1", options))
	if got := c.aws.LaunchTemplates(); len(got) != 1 || got[0].ID != before[0].ID || got[0].Name != before[0].Name {
		t.Errorf("after a restart the templates are %+v, want %+v", got, before)
	}
	calls := len(c.aws.Calls())
	after.launch(t, launchRequest(class, "g3-1", options))
	if n := len(c.aws.Calls()) - calls; n != 1 {
		t.Errorf("a template that is known cost %d calls, want CreateFleet alone", n)
	}
	for name, change := range map[string]func(*cloudprovider.LaunchRequest){
		"label":     func(r *cloudprovider.LaunchRequest) { r.Labels["team"] = "b" },
		"taint":     func(r *cloudprovider.LaunchRequest) { r.Taints = nil },
		"node pool": func(r *cloudprovider.LaunchRequest) { r.NodePool = "other" },
	} {
		n := len(c.aws.LaunchTemplates())
		req := launchRequest(class, "differs-"+name, options)
		change(&req)
		after.launch(t, req)
		if got := len(c.aws.LaunchTemplates()) - n; got != 1 {
			t.Errorf("with another %s: %d new templates, want 1", name, got)
		}
	}
}

// B103: a template is deleted out of band while a process believes in it, whether EC2 says so of the call or of the
// pools: it is created again, once.
func TestTemplateDeletedOutOfBand(t *testing.T) {
	for name, perPool := range map[string]bool{"of the call": false, "of its pools": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud(t)
				class := c.ready(t, demoClass())
				options := c.options(t, class, onDemand, "m5.large")
				c.launch(t, launchRequest(class, "g1-1", options))
				if err := restart(c).Sweep(t.Context(), 0); err != nil || len(c.aws.LaunchTemplates()) != 0 {
					t.Fatalf("Sweep: %v, %d templates are left", err, len(c.aws.LaunchTemplates()))
				}
				if perPool {
					c.aws.SetFault(fakeaws.Rule{Action: "CreateFleet", Code: "InvalidLaunchTemplateName.NotFoundException", PerPool: true, Times: len(options)})
					c.aws.SetFault(fakeaws.Rule{Action: "CreateFleet", Code: "InvalidLaunchTemplateId.NotFound", PerPool: true, Times: 1})
				}
				created := c.calls("CreateLaunchTemplate")
				for _, token := range []string{"g2-1", "g2-2", "g2-3"} { // as the claim's attempts do
					if _, err := c.Launch(t.Context(), launchRequest(class, token, options)); err == nil {
						break
					}
					time.Sleep(time.Second)
				}
				if n := len(c.aws.Instances()); n != 2 {
					t.Errorf("%d machines, want that of before and one more", n)
				}
				if n := c.calls("CreateLaunchTemplate") - created; !perPool && n != 1 || n > 3 {
					t.Errorf("created again %d times, want once", n)
				}
			})
		})
	}
}
