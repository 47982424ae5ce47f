// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/fakeaws"
	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
)

func TestLifeOfAnInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		settings := fakeaws.DefaultSettings()
		settings.DescribeLag = metav1.Duration{Duration: 10 * time.Second}
		c := newCloud(t, func(o *fakeaws.Options) { o.Settings = &settings })
		class := c.ready(t, demoClass())
		req := launchRequest(class, "g1-1", c.options(t, class, onDemand, "m5.large"))
		launched := c.launch(t, req).Instances[0]
		if _, err := c.Get(t.Context(), launched.ProviderID); !errors.Is(err, cloudprovider.ErrInstanceNotFound) {
			t.Errorf("Get within the lag: %v", err)
		}
		time.Sleep(10 * time.Second)
		got, err := c.Get(t.Context(), launched.ProviderID)
		if err != nil {
			t.Fatal(err)
		}
		if got.ID != launched.ID || got.ProviderID != launched.ProviderID || got.InstanceType != launched.InstanceType || got.Zone != launched.Zone ||
			got.ZoneID != launched.ZoneID || got.ImageID != launched.ImageID || got.SubnetID != launched.SubnetID || got.CapacityType != launched.CapacityType || got.State != "running" {
			t.Errorf("described as %+v, launched as %+v", got, launched)
		}
		if err := c.Tag(t.Context(), launched.ProviderID, map[string]string{"Name": "ip-10-0-0-1.ec2.internal"}); err != nil {
			t.Error(err)
		}
		if tag := c.aws.Instances()[0].Tags["Name"]; tag != "ip-10-0-0-1.ec2.internal" {
			t.Errorf("tag Name is %q", tag)
		}
		if err := c.Terminate(t.Context(), launched.ProviderID); err != nil {
			t.Error(err)
		}
		if got, err := c.Get(t.Context(), launched.ProviderID); err != nil || got.State != "shutting-down" {
			t.Errorf("Get while shutting down: %+v, %v", got, err)
		}
		if err := c.Terminate(t.Context(), launched.ProviderID); err != nil {
			t.Errorf("second Terminate: %v", err)
		}
		time.Sleep(2 * time.Second)
		if _, err := c.Get(t.Context(), launched.ProviderID); !errors.Is(err, cloudprovider.ErrInstanceNotFound) {
			t.Errorf("Get of a terminated instance: %v", err)
		}
		if err := c.Terminate(t.Context(), launched.ProviderID); !errors.Is(err, cloudprovider.ErrInstanceNotFound) {
			t.Errorf("Terminate of a terminated instance: %v", err)
		}
		if list, err := c.List(t.Context()); err != nil || len(list) != 0 {
			t.Errorf("List: %+v, %v", list, err)
		}
		if found, err := c.FindLaunched(t.Context(), req.Group); err != nil || len(found) != 0 {
			t.Errorf("FindLaunched: %+v, %v", found, err)
		}
	})
}

func TestUnknownInstance(t *testing.T) {
	t.Parallel()
	c := newCloud(t)
	const id = "aws:///us-east-1a/i-0123456789abcdef0"
	if _, err := c.Get(t.Context(), id); !errors.Is(err, cloudprovider.ErrInstanceNotFound) {
		t.Errorf("Get: %v", err)
	}
	if err := c.Terminate(t.Context(), id); !errors.Is(err, cloudprovider.ErrInstanceNotFound) {
		t.Errorf("Terminate: %v", err)
	}
	if err := c.Tag(t.Context(), id, map[string]string{"Name": "x"}); !errors.Is(err, cloudprovider.ErrInstanceNotFound) {
		t.Errorf("Tag: %v", err)
	}
}

func TestParseProviderID(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{
		"aws:///us-east-1a/i-0123": "i-0123", "aws:///us-east-1-bos-1a/i-1": "i-1",
		"": "", "kind://x/y": "", "aws:///us-east-1a": "", "aws:///us-east-1a/": "", "aws:///a/b/i-1": "", "aws:///a/x-1": "",
	} {
		got, err := parseProviderID(id)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("parseProviderID(%q) = %q, %v; want %q", id, got, err, want)
		}
	}
}
