// SPDX-License-Identifier: Apache-2.0

package pricefile

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

const head = "apiVersion: jit-scheduler.io/v1alpha1\nkind: PriceFile\n"

func labels(pairs ...string) func(string) (string, bool) {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return func(key string) (string, bool) {
		v, ok := m[key]
		return v, ok
	}
}

// offering is m5.large as the adapter describes it.
func offering(capacityType, zone string) func(string) (string, bool) {
	return labels("node.kubernetes.io/instance-type", "m5.large", "karpenter.k8s.aws/instance-family", "m5", "karpenter.k8s.aws/instance-category", "m",
		"karpenter.k8s.aws/instance-generation", "5", "karpenter.sh/capacity-type", capacityType, "topology.kubernetes.io/zone", zone)
}

func TestPrice(t *testing.T) {
	t.Parallel()
	const family = "  requirements: [{key: karpenter.k8s.aws/instance-family, operator: In, values: [m5, c5]}]\n"
	const onDemand = "  requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}]\n"
	cases := map[string]struct {
		rules string
		// want of on-demand in us-east-1a (0.1), spot in us-east-1b (0.04), spot in us-east-1c (unknown); 0: none.
		want [3]float64
	}{
		"no rules":           {rules: "rules: []", want: [3]float64{0.1, 0.04, 0}},
		"nothing":            {want: [3]float64{0.1, 0.04, 0}},
		"everything":         {rules: "rules:\n- priceAdjustment: -30%", want: [3]float64{0.07, 0.028, 0}},
		"family":             {rules: "rules:\n- priceAdjustment: '-50%'\n" + family, want: [3]float64{0.05, 0.02, 0}},
		"capacity type":      {rules: "rules:\n- priceAdjustment: '-30%'\n" + onDemand, want: [3]float64{0.07, 0.04, 0}},
		"zone":               {rules: "rules:\n- priceAdjustment: '+10%'\n  requirements: [{key: topology.kubernetes.io/zone, operator: NotIn, values: [us-east-1a]}]", want: [3]float64{0.1, 0.044, 0}},
		"type":               {rules: "rules:\n- price: 0.06\n  requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [m5.large]}]", want: [3]float64{0.06, 0.06, 0.06}},
		"old name of a key":  {rules: "rules:\n- price: 0.06\n  requirements: [{key: beta.kubernetes.io/instance-type, operator: In, values: [m5.large]}]", want: [3]float64{0.06, 0.06, 0.06}},
		"another type":       {rules: "rules:\n- price: 0.06\n  requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [m5.xlarge]}]", want: [3]float64{0.1, 0.04, 0}},
		"generation":         {rules: "rules:\n- priceAdjustment: '-10%'\n  requirements: [{key: karpenter.k8s.aws/instance-generation, operator: Gt, values: ['4']}]", want: [3]float64{0.09, 0.036, 0}},
		"amount":             {rules: "rules:\n- priceAdjustment: -0.01", want: [3]float64{0.09, 0.03, 0}},
		"in order":           {rules: "rules:\n- priceAdjustment: '-50%'\n- priceAdjustment: '-10%'\n- priceAdjustment: '+0.1'", want: [3]float64{0.145, 0.118, 0}},
		"a price, then less": {rules: "rules:\n- price: 1\n- priceAdjustment: '-10%'", want: [3]float64{0.9, 0.9, 0.9}},
		"paid already":       {rules: "rules:\n- priceAdjustment: '-1'", want: [3]float64{least, least, 0}},
		"quoted price":       {rules: "rules:\n- price: '0.5'", want: [3]float64{0.5, 0.5, 0.5}},
		"JSON":               {rules: "rules: [{\"priceAdjustment\": \"-30%\"}]", want: [3]float64{0.07, 0.028, 0}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, err := Parse([]byte(head + tc.rules))
			if err != nil {
				t.Fatal(err)
			}
			var got [3]float64
			for i, o := range []struct {
				label func(string) (string, bool)
				price float64
				known bool
			}{{offering("on-demand", "us-east-1a"), 0.1, true}, {offering("spot", "us-east-1b"), 0.04, true}, {offering("spot", "us-east-1c"), 0, false}} {
				price, ok := f.Price(o.label, o.price, o.known)
				if ok != (price > 0) {
					t.Errorf("offering %d: price %v, known %v", i, price, ok)
				}
				got[i] = math.Round(price*1e9) / 1e9
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	var none *File
	if price, ok := none.Price(nil, 0.1, true); price != 0.1 || !ok || none.Rules() != 0 {
		t.Errorf("without a file: %v, %v", price, ok)
	}
}

func TestParseNamesTheField(t *testing.T) {
	t.Parallel()
	rule := func(s string) string { return head + "rules:\n- price: 1\n- " + s }
	cases := map[string]struct{ text, want string }{
		"empty":             {"", "apiVersion: Unsupported value"},
		"no YAML":           {"a: b: c", "mapping values"},
		"a list":            {"[]", "cannot unmarshal array"},
		"version":           {"apiVersion: v1\nkind: PriceFile", `apiVersion: Unsupported value: "v1"`},
		"kind":              {"apiVersion: jit-scheduler.io/v1alpha1\nkind: Prices", `kind: Unsupported value: "Prices"`},
		"unknown field":     {rule("price: 1\n  discount: 3"), `rules[1].discount: Forbidden: unknown field "rules[1].discount"`},
		"field twice":       {rule("price: 1\n  price: 2"), `key "price" already set`},
		"case":              {rule("Price: 1"), `rules[1].Price: Forbidden: unknown field`},
		"no price":          {rule("requirements: []"), "rules[1].price: Required value: or priceAdjustment"},
		"both":              {rule("price: 1\n  priceAdjustment: -1%"), "rules[1].priceAdjustment: Forbidden"},
		"free":              {rule("price: 0"), `rules[1].price: Invalid value: "0"`},
		"negative":          {rule("price: -1"), `rules[1].price: Invalid value: "-1"`},
		"huge":              {rule("price: 1000000"), "rules[1].price: Invalid value"},
		"no number":         {rule("price: much"), "rules[1].price: Invalid value"},
		"not a number":      {rule("price: .nan"), "Invalid value"},
		"hexadecimal":       {rule("price: '0x1p3'"), "rules[1].price: Invalid value"},
		"exponent":          {rule("price: '1e-3'"), "rules[1].price: Invalid value"},
		"an object":         {rule("price: {}"), "rules[1].price: Invalid value"},
		"unsigned":          {rule("priceAdjustment: 30%"), `must begin with + or -, such as "-30%"`},
		"all of it":         {rule("priceAdjustment: -100%"), "must be more than -100%"},
		"more than all":     {rule("priceAdjustment: -130%"), "must be more than -100%"},
		"too much":          {rule("priceAdjustment: +1001%"), "at most +1000%"},
		"twice signed":      {rule("priceAdjustment: --30%"), "rules[1].priceAdjustment: Invalid value"},
		"space":             {rule("priceAdjustment: '- 30%'"), "rules[1].priceAdjustment: Invalid value"},
		"unknown label":     {rule("price: 1\n  requirements: [{key: instance-family, operator: Exists}]"), `rules[1].requirements[0].key: Invalid value: "instance-family"`},
		"unknown operator":  {rule("price: 1\n  requirements: [{key: topology.kubernetes.io/zone, operator: Is, values: [a]}]"), `rules[1].requirements[0].operator: Unsupported value: "Is"`},
		"no operator":       {rule("price: 1\n  requirements: [{key: topology.kubernetes.io/zone}]"), `rules[1].requirements[0].operator: Unsupported value: ""`},
		"no values":         {rule("price: 1\n  requirements: [{key: topology.kubernetes.io/zone, operator: In}]"), "rules[1].requirements[0].values: Required value"},
		"too many values":   {rule("price: 1\n  requirements: [{key: topology.kubernetes.io/zone, operator: Exists, values: [a]}]"), "rules[1].requirements[0].values: Forbidden"},
		"no whole number":   {rule("price: 1\n  requirements: [{key: karpenter.k8s.aws/instance-cpu, operator: Gt, values: ['1.5']}]"), "rules[1].requirements[0].values: Invalid value"},
		"capacity type":     {rule("price: 1\n  requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [ondemand]}]"), `rules[1].requirements[0].values[0]: Unsupported value: "ondemand"`},
		"every fault":       {rule("price: 0\n- price: 0"), `rules[2].price: Invalid value: "0"`},
		"too long":          {strings.Repeat("#", maxBytes+1), "more than 1 MiB"},
		"too many rules":    {head + "rules:\n" + strings.Repeat("- price: 1\n", maxRules+1), "rules: Too many"},
		"values of a wrong": {rule("price: 1\n  requirements: [{key: topology.kubernetes.io/zone, operator: In, values: [1]}]"), "cannot unmarshal number"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, err := Parse([]byte(tc.text))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Parse() = %v, %v; want an error with %q", f, err, tc.want)
			}
		})
	}
}

// TestWatch replaces the file as a kubelet does with a ConfigMap, spoils it, removes it and mends it.
func TestWatch(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "prices.yaml")
	write := func(text string) {
		next := filepath.Join(dir, "next")
		if err := errors.Join(os.WriteFile(next, []byte(text), 0o600), os.Rename(next, path)); err != nil {
			t.Fatal(err)
		}
	}
	write(head + "rules: [{price: 1}]")
	first, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var mu sync.Mutex // the sleeps order the two goroutines in time, not in memory
		var said []string
		go Watch(ctx, path, first, time.Second, func(f *File, err error) {
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				said = append(said, err.Error())
				return
			}
			price, _ := f.Price(labels(), 0, false)
			said = append(said, time.Duration(price*float64(time.Second)).String())
		})
		look := func(want ...string) {
			t.Helper()
			time.Sleep(5*time.Second + time.Millisecond)
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if len(said) != len(want) {
				t.Fatalf("told %q, want %q", said, want)
			}
			for i := range want {
				if !strings.Contains(said[i], want[i]) {
					t.Errorf("told %q, want %q", said[i], want[i])
				}
			}
			said = nil
		}
		look() // as it was loaded
		write(head + "rules: [{price: 2}]")
		look("2s")
		write(head + "rules: [{price: -2}]")
		look("prices.yaml: rules[0].price: Invalid value")
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		look("no such file")
		write(head + "rules: [{price: 2}]")
		look("2s")
	})
}

func TestLoad(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.yaml")
	if err := os.WriteFile(bad, []byte("kind: [x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{"missing": filepath.Join(dir, "none"), "a folder": dir, "bad": bad} {
		if _, err := Load(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: Load() = %v, want an error that names the file", name, err)
		}
	}
}

// FuzzParse: no file makes the parser panic, and what it accepts gives prices that can be compared.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", head, head + "rules:\n- price: 0.06\n  requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [m5.large]}]",
		head + "rules:\n- priceAdjustment: -30%\n- priceAdjustment: '+0.5'\n  requirements: [{key: karpenter.k8s.aws/instance-cpu, operator: Gt, values: ['4']}]",
		`{"apiVersion":"jit-scheduler.io/v1alpha1","kind":"PriceFile","rules":[{"price":"1"}]}`, head + "rules: [null]", head + "rules: [{price: 1e400}]", "&a [*a]",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := Parse(text)
		if err != nil {
			return
		}
		for _, base := range []float64{0, 0.0001, 0.1, 500} {
			price, known := file.Price(offering("spot", "us-east-1b"), base, base > 0)
			if known && (price <= 0 || math.IsNaN(price) || math.IsInf(price, 0)) || base > 0 && !known {
				t.Errorf("%q makes %v of %v (known %v)", text, price, base, known)
			}
		}
	})
}
