// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/fakeaws"
)

func TestParseProduct(t *testing.T) {
	t.Parallel()
	const head = `{"product":{"attributes":{"instanceType":"m5.large"}},"terms":{"OnDemand":{"a":{"priceDimensions":{"b":{"pricePerUnit":`
	cases := map[string]struct {
		text, region string
		want         float64 // 0: none
	}{
		"dollars":   {head + `{"USD":"0.0960000000"}}}}}}}`, "us-east-1", 0.096},
		"yuan":      {head + `{"CNY":"0.5"}}}}}}}`, "cn-north-1", 0.5},
		"other":     {head + `{"CNY":"0.5"}}}}}}}`, "us-east-1", 0},
		"zero":      {head + `{"USD":"0.0000000000"}}}}}}}`, "us-east-1", 0},
		"NaN":       {head + `{"USD":"NaN"}}}}}}}`, "us-east-1", 0},
		"infinite":  {head + `{"USD":"Inf"}}}}}}}`, "us-east-1", 0},
		"no type":   {`{"terms":{}}`, "us-east-1", 0},
		"no JSON":   {`<html>`, "us-east-1", 0},
		"no prices": {`{"product":{"attributes":{"instanceType":"m5.large"}}}`, "us-east-1", 0},
	}
	for name, c := range cases {
		instanceType, price, ok := parseProduct(c.text, c.region)
		if price != c.want || ok != (c.want > 0) || (ok && instanceType != "m5.large") {
			t.Errorf("%s: got %q %v %v, want %v", name, instanceType, price, ok, c.want)
		}
	}
}

func TestCatalogueWithoutPrices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(t)
		c.catalogue = nil
		for _, action := range []string{"GetProducts", "DescribeSpotPriceHistory"} {
			c.aws.SetFault(fakeaws.Rule{Action: action, Code: "InternalError", Status: 500})
		}
		class := c.ready(t, demoClass())
		if got := c.typeNamed(t, class, "m5.large").Offerings; len(got) != 3 || got[0].Price != 0.096 {
			t.Errorf("without prices: %+v, want the on-demand prices to start with, and no spot", got)
		}
		c.aws.DeleteFault("")
		time.Sleep(resolveTTL)
		class = c.ready(t, class)
		if got := c.typeNamed(t, class, "m5.large").Offerings; len(got) != 6 {
			t.Errorf("prices are back: %+v", got)
		}
	})
}

func TestCatalogueNeedsTypes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(t)
		c.catalogue = nil
		c.aws.SetFault(fakeaws.Rule{Action: "DescribeInstanceTypes", Code: "InternalError", Status: 500})
		if _, err := c.Resolve(t.Context(), demoClass()); err == nil {
			t.Error("Resolve without instance types gave no error")
		}
		c.aws.DeleteFault("")
		class := c.ready(t, demoClass())
		before, err := c.InstanceTypes(class)
		if err != nil {
			t.Fatal(err)
		}
		c.aws.SetFault(fakeaws.Rule{Code: "InternalError", Status: 500})
		time.Sleep(typesTTL)
		if _, err := c.Resolve(t.Context(), class); err == nil {
			t.Error("Resolve without AWS gave no error")
		}
		after, err := c.InstanceTypes(class)
		if err != nil || len(after) != len(before) || &after[0] != &before[0] {
			t.Errorf("what was known is gone: %d types, before %d, %v", len(after), len(before), err)
		}
	})
}

func TestRefreshIsSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(t)
		c.catalogue = nil
		class := c.ready(t, demoClass())
		before, err := c.InstanceTypes(class)
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			time.Sleep(resolveTTL)
			class = c.ready(t, class)
		}
		for action, most := range map[string]int{"DescribeInstanceTypes": 15, "GetProducts": 20, "DescribeSubnets": 21, "GetParameter": 5, "GetInstanceProfile": 2, "CreateInstanceProfile": 1} {
			if n := c.calls(action); n > most {
				t.Errorf("%d calls of %s in 20 minutes, want at most %d", n, action, most)
			}
		}
		if after, err := c.InstanceTypes(class); err != nil || &after[0] != &before[0] {
			t.Errorf("the list was built again though nothing has changed (%v)", err)
		}
	})
}
