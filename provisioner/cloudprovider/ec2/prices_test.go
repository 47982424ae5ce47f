// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/google/go-cmp/cmp"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/fakeaws"
	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider/pricefile"
)

// oddPrices is a price list service whose every page is what f makes of it; page counts from 0 in each listing.
type oddPrices struct {
	mu sync.Mutex
	f  func(page int) (*pricing.GetProductsOutput, error)
}

func (o *oddPrices) GetProducts(ctx context.Context, in *pricing.GetProductsInput, _ ...func(*pricing.Options)) (*pricing.GetProductsOutput, error) {
	o.mu.Lock()
	f := o.f
	o.mu.Unlock()
	page := 0
	if in.NextToken != nil {
		if _, err := fmt.Sscan(*in.NextToken, &page); err != nil {
			return nil, err
		}
	}
	out, err := f(page)
	if out == nil && err == nil { // hangs
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return out, err
}

func (o *oddPrices) set(f func(page int) (*pricing.GetProductsOutput, error)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.f = f
}

func entry(instanceType, usd string) string {
	return fmt.Sprintf(`{"product":{"attributes":{"instanceType":%q}},"terms":{"OnDemand":{"a":{"priceDimensions":{"b":{"pricePerUnit":{"USD":%q}}}}}}}`, instanceType, usd)
}

func productsPageOf(next int, entries ...string) (*pricing.GetProductsOutput, error) {
	out := &pricing.GetProductsOutput{PriceList: entries}
	if next > 0 {
		out.NextToken = aws.String(fmt.Sprint(next))
	}
	return out, nil
}

// logLines is a log that several goroutines write.
type logLines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logLines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *logLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *logLines) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Reset()
}

// logged has a logger that keeps lines.
func logged(t *testing.T) (context.Context, *logLines) {
	var lines logLines
	return klog.NewContext(t.Context(), textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&lines)))), &lines
}

// TestPriceListFaults: whatever the price list service does, the class becomes ready in time and has prices, the last good
// ones stay, and the fault is said once.
func TestPriceListFaults(t *testing.T) {
	const before, builtIn = 0.0777, 0.096
	cases := map[string]struct {
		f func(page int) (*pricing.GetProductsOutput, error)
		// want of m5.large after it had answered before.
		want float64
		said string
	}{
		"down":  {func(int) (*pricing.GetProductsOutput, error) { return nil, errors.New("connection refused") }, before, "connection refused"},
		"hangs": {func(int) (*pricing.GetProductsOutput, error) { return nil, nil }, before, "no answer in time"},
		"empty": {func(int) (*pricing.GetProductsOutput, error) { return productsPageOf(0) }, before, "the price list is empty"},
		"garbage": {func(int) (*pricing.GetProductsOutput, error) {
			return productsPageOf(0, "<html>", "{}", "null", `[1]`, `{"terms":3}`)
		}, before, "none of 5 entries has a price"},
		"zero": {func(int) (*pricing.GetProductsOutput, error) {
			return productsPageOf(0, entry("m5.large", "0.0000000000"))
		}, before, "none of 1 entries has a price"},
		"some garbage": {func(int) (*pricing.GetProductsOutput, error) {
			return productsPageOf(0, "<html>", entry("m5.large", "0.05"), entry("m5.large", "-1"), entry("", "3"))
		}, 0.05, ""},
		"fails on the second page": {func(page int) (*pricing.GetProductsOutput, error) {
			if page > 0 {
				return nil, errors.New("connection reset")
			}
			return productsPageOf(1, entry("m5.large", "0.05"))
		}, 0.05, "connection reset"},
		"never ends": {func(page int) (*pricing.GetProductsOutput, error) {
			return productsPageOf(page+1, entry("m5.large", "0.05"))
		}, 0.05, "no end after 200 pages"},
		"the same page":   {func(int) (*pricing.GetProductsOutput, error) { return productsPageOf(1, entry("m5.large", "0.05")) }, 0.05, ""},
		"only other ones": {func(int) (*pricing.GetProductsOutput, error) { return productsPageOf(0, entry("m9.large", "0.05")) }, before, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, lines := logged(t)
				c := newCloud(t)
				odd := &oddPrices{f: tc.f}
				c.pricing = odd
				fresh := *soldInTheRegion()
				fresh.onDemand, fresh.onDemandAgain = nil, schedule{}
				c.catalogue = &fresh
				price := func() float64 {
					t.Helper()
					status, err := c.Resolve(ctx, demoClass())
					if err != nil {
						t.Fatal(err)
					}
					class := demoClass()
					class.Status = *status
					return c.typeNamed(t, class, "m5.large").Offerings[0].Price
				}
				began := time.Now()
				first := price()
				if want := builtIn; tc.want != before {
					want = tc.want
					if first != want {
						t.Errorf("the first price is %v, want %v", first, want)
					}
				} else if first != want {
					t.Errorf("the first price is %v, want the built-in %v", first, want)
				}
				if took := time.Since(began); took > 10*time.Second {
					t.Errorf("the class was ready only after %s", took)
				}
				// It answers, and then again as above, for a day.
				odd.set(func(int) (*pricing.GetProductsOutput, error) { return productsPageOf(0, entry("m5.large", "0.0777")) })
				time.Sleep(13 * time.Hour)
				price()
				time.Sleep(time.Minute)
				if got := price(); got != before {
					t.Errorf("it answers: %v, want %v", got, before)
				}
				lines.Reset()
				odd.set(tc.f)
				for range 36 {
					time.Sleep(40 * time.Minute)
					price()
				}
				if got := price(); got != tc.want {
					t.Errorf("a day later: %v, want %v", got, tc.want)
				}
				if n := strings.Count(lines.String(), "cannot be read"); n != min(len(tc.said), 1) || !strings.Contains(lines.String(), tc.said) {
					t.Errorf("said %d times, want %q once:\n%s", n, tc.said, lines)
				}
				lines.Reset()
				odd.set(func(int) (*pricing.GetProductsOutput, error) { return productsPageOf(0, entry("m5.large", "0.0888")) })
				for range 14 {
					time.Sleep(time.Hour)
					price()
				}
				if got := price(); got != 0.0888 {
					t.Errorf("in the end: %v, want what it answers again", got)
				}
				if n := strings.Count(lines.String(), "read again"); n != min(len(tc.said), 1) {
					t.Errorf("said %d times that it answers again:\n%s", n, lines)
				}
				time.Sleep(onDemandTimeout) // for a read that hangs
			})
		})
	}
}

// TestPricesDenied: the call that the policy forgot is named, and nothing else suffers.
func TestPricesDenied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, lines := logged(t)
		c := newCloud(t)
		fresh := *soldInTheRegion()
		fresh.onDemand, fresh.onDemandAgain, fresh.spotAgain = nil, schedule{}, schedule{}
		c.catalogue = &fresh
		c.aws.SetFault(fakeaws.Rule{Action: "GetProducts", Code: "AccessDeniedException", Status: 400, Message: "not authorized to perform: pricing:GetProducts"})
		c.aws.SetFault(fakeaws.Rule{Action: "DescribeSpotPriceHistory", Code: "UnauthorizedOperation", Status: 403, Message: "You are not authorized"})
		for range 5 {
			if _, err := c.Resolve(ctx, demoClass()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Minute)
		}
		if err := c.Check(ctx); err != nil {
			t.Errorf("prices are no matter of readiness: %v", err)
		}
		for _, want := range []string{"pricing:GetProducts", "EC2 DescribeSpotPriceHistory: UnauthorizedOperation"} {
			if n := strings.Count(lines.String(), want); n != 1 {
				t.Errorf("%q was said %d times:\n%s", want, n, lines)
			}
		}
		time.Sleep(onDemandTimeout)
	})
}

// TestIsolatedVPC: the price list is not asked, spot prices are.
func TestIsolatedVPC(t *testing.T) {
	cases := map[string]struct {
		change   func(*Options)
		wantAsks bool
	}{
		"open":     {func(*Options) {}, true},
		"isolated": {func(o *Options) { o.IsolatedVPC = true }, false},
		"gov":      {func(o *Options) { o.AWS.Region = "us-gov-west-1" }, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ctx, lines := logged(t)
			server := fakeaws.New(fakeaws.Options{})
			t.Cleanup(server.Close)
			options := Options{ClusterName: "demo", AWS: server.AWSConfig("AKIATEST")}
			tc.change(&options)
			c := &cloud{Provider: New(options), aws: server}
			fresh := *soldInTheRegion()
			fresh.prices = prices{builtIn: builtInPrices(options.AWS.Region)}
			c.catalogue = &fresh
			sold, err := c.refreshCatalogue(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if asked := c.calls("GetProducts") > 0; asked != tc.wantAsks {
				t.Errorf("the price list was asked: %v", asked)
			}
			if len(sold.spot) == 0 {
				t.Error("no spot prices")
			}
			price, ok := sold.prices.of(sold.types["m5.large"], &cloudprovider.Offering{Zone: "us-east-1a", CapacityType: onDemand})
			if want := map[bool]float64{true: 0.096, false: builtInPrices(options.AWS.Region).prices["m5.large"]}[tc.wantAsks]; !ok || price != want {
				t.Errorf("m5.large costs %v, want %v", price, want)
			}
			if said := strings.Contains(lines.String(), "built in"); said == tc.wantAsks {
				t.Errorf("said that prices are built in: %v\n%s", said, lines)
			}
		})
	}
}

func TestPricingRegion(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ asked, table string }{
		"us-east-1": {"us-east-1", "us-east-1"}, "sa-east-1": {"us-east-1", "us-east-1"}, "ap-southeast-2": {"ap-south-1", "us-east-1"},
		"eu-west-1": {"eu-central-1", "us-east-1"}, "cn-north-1": {"cn-northwest-1", "cn-north-1"}, "cn-northwest-1": {"cn-northwest-1", "cn-north-1"},
		"us-gov-east-1": {"", "us-gov-east-1"}, "us-gov-west-1": {"", "us-gov-west-1"}, "us-iso-east-1": {"", "us-east-1"}, "eu-isoe-west-1": {"", "us-east-1"},
	}
	for region, want := range cases {
		table := builtInPrices(region)
		if diff := cmp.Diff([]string{want.asked, want.table}, []string{pricingRegion(region), table.region}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", region, diff)
		}
		if _, err := time.Parse(time.DateOnly, table.date); err != nil || len(table.prices) < 300 {
			t.Errorf("%s: %d prices of %q", region, len(table.prices), table.date)
		}
	}
}

func priceRules(t *testing.T, rules string) *pricefile.File {
	t.Helper()
	f, err := pricefile.Parse([]byte("apiVersion: jit-scheduler.io/v1alpha1\nkind: PriceFile\nrules:\n" + rules))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestSetPrices: new rules hold at once for classes that are resolved, and for those that are resolved later.
func TestSetPrices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud(t)
		class := c.ready(t, demoClass())
		seen := func(class string) map[string]float64 {
			of := demoClass()
			of.Name = class
			if class == "other" {
				of.UID = "another"
			}
			got := map[string]float64{}
			for _, o := range c.typeNamed(t, of, "m5.large").Offerings {
				got[o.CapacityType+" "+o.Zone] = o.Price
			}
			return got
		}
		before := seen("default")
		c.SetPrices(priceRules(t, `
- {priceAdjustment: -50%, requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}, {key: karpenter.k8s.aws/instance-family, operator: In, values: [m5]}]}
- {price: 0.001, requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [spot]}, {key: topology.k8s.aws/zone-id, operator: In, values: [use1-az2]}]}
`))
		want := map[string]float64{}
		for key, price := range before {
			want[key] = price
			if strings.HasPrefix(key, onDemand) {
				want[key] = price / 2
			}
		}
		for _, o := range c.typeNamed(t, class, "m5.large").Offerings {
			if o.ZoneID == "use1-az2" && o.CapacityType == spot {
				want["spot "+o.Zone] = 0.001
			}
		}
		if diff := cmp.Diff(want, seen("default")); diff != "" {
			t.Errorf("at once (-want +got):\n%s", diff)
		}
		if got := c.typeNamed(t, class, "c5.large").Offerings[0]; got.Price != 0.085 {
			t.Errorf("another family: %+v", got)
		}
		other := demoClass()
		other.Name, other.UID = "other", "another"
		c.ready(t, other)
		time.Sleep(2 * resolveTTL)
		c.ready(t, class)
		for _, name := range []string{"default", "other"} {
			if diff := cmp.Diff(want, seen(name)); diff != "" {
				t.Errorf("later, class %s (-want +got):\n%s", name, diff)
			}
		}
		c.SetPrices(nil)
		if diff := cmp.Diff(before, seen("default")); diff != "" {
			t.Errorf("without rules (-want +got):\n%s", diff)
		}
		time.Sleep(onDemandTimeout)
	})
}

// TestUnknownPrice: what has no price is not offered but listed apart, and is said once; a rule makes it an offering.
func TestUnknownPrice(t *testing.T) {
	ctx, lines := logged(t)
	c := newCloud(t)
	fresh, later := *soldInTheRegion(), schedule{next: time.Now().Add(time.Hour)}
	fresh.prices = prices{onDemand: map[string]float64{"m5.large": 0.1}, spot: map[spotPool]float64{{"c5.large", "us-east-1b"}: 0.03}, onDemandAgain: later, spotAgain: later}
	c.catalogue = &fresh
	if _, err := c.Resolve(ctx, demoClass()); err != nil {
		t.Fatal(err)
	}
	count := func(name string) [2]int {
		it := c.typeNamed(t, demoClass(), name)
		return [2]int{len(it.Offerings), len(it.Unpriced)}
	}
	got := map[string][2]int{"m5.large": count("m5.large"), "c5.large": count("c5.large"), "r5.large": count("r5.large")}
	want := map[string][2]int{"m5.large": {3, 3}, "c5.large": {1, 5}, "r5.large": {0, 6}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("offerings and those without a price (-want +got):\n%s", diff)
	}
	if n := strings.Count(lines.String(), "price is not known"); n != 1 {
		t.Errorf("said %d times:\n%s", n, lines)
	}
	c.SetPrices(priceRules(t, "- {price: 0.2, requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [r5.large]}]}"))
	if got := count("r5.large"); got != [2]int{6, 0} {
		t.Errorf("with a rule: %v", got)
	}
}

func TestSchedule(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	var s schedule
	if !s.due(now) {
		t.Error("the first time is not due")
	}
	for i, most := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 16 * time.Minute, 30 * time.Minute, 30 * time.Minute} {
		s.failed(now)
		if wait := s.next.Sub(now); wait > most || wait < most*9/10 {
			t.Errorf("after failure %d: %s, want about %s", i+1, wait, most)
		}
	}
	s.read(now, 12*time.Hour)
	if wait := s.next.Sub(now); wait > 12*time.Hour || wait < 10*time.Hour || s.failures != 0 {
		t.Errorf("after an answer: %s, %d failures", wait, s.failures)
	}
	apart := map[time.Time]bool{}
	for range 20 {
		s.read(now, 12*time.Hour)
		apart[s.next] = true
	}
	if len(apart) < 15 {
		t.Errorf("%d different moments of 20", len(apart))
	}
}

// FuzzParseProduct: no entry of a price list makes the parser panic, and a price is one that can be compared, the same
// each time.
func FuzzParseProduct(f *testing.F) {
	for _, seed := range []string{
		entry("m5.large", "0.0960000000"), entry("m5.large", "NaN"), entry("m5.large", "1e309"), entry("m5.large", "0x1p-2"), "", "null", "[]", `{"product":null,"terms":null}`,
		`{"product":{"attributes":{"instanceType":"a"}},"terms":{"OnDemand":{"a":null,"b":{"priceDimensions":{"x":{"pricePerUnit":{"USD":"1","CNY":"7"}},"w":{"pricePerUnit":{"USD":"2"}}}}}}}`,
	} {
		f.Add(seed, "us-east-1")
		f.Add(seed, "cn-north-1")
	}
	f.Fuzz(func(t *testing.T, text, region string) {
		name, price, ok := parseProduct(text, region)
		if ok != (price > 0) || ok != (name != "") || price > maxPrice {
			t.Errorf("parseProduct(%q) = %q, %v, %v", text, name, price, ok)
		}
		if again, price2, ok2 := parseProduct(text, region); again != name || price2 != price || ok2 != ok {
			t.Errorf("parseProduct(%q) is %v, then %v", text, price, price2)
		}
	})
}
