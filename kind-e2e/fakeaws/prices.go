// SPDX-License-Identifier: Apache-2.0

package fakeaws

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/jit-scheduler/jit-scheduler/kind-e2e/fakeaws/catalogue"
)

// Prices returns the on-demand prices in USD per hour by instance type.
func Prices() map[string]float64 {
	prices := map[string]float64{}
	for _, it := range catalogue.Types() {
		prices[it.Name] = it.OnDemandUSD
	}
	return prices
}

type spotPriceItem struct {
	InstanceType string `xml:"instanceType"`
	Zone         string `xml:"availabilityZone"`
	ZoneID       string `xml:"availabilityZoneId"`
	Product      string `xml:"productDescription"`
	Price        string `xml:"spotPrice"`
	Timestamp    string `xml:"timestamp"`
}

type spotPricesReply struct {
	Prices    []spotPriceItem `xml:"spotPriceHistorySet>item"`
	NextToken string          `xml:"nextToken"` // present and empty on the last page, as in EC2
}

const (
	linux      = "Linux/UNIX"
	notANumber = "NaN" // as a price of a damaged reply
)

// describeSpotPriceHistory answers the latest price of every pool, whatever the time range.
func describeSpotPriceHistory(s *Server, r *request) (any, error) {
	if r.form.bool("DryRun") {
		return nil, errDryRun()
	}
	names, products, filters := r.form.list("InstanceType"), r.form.list("ProductDescription"), r.form.filters()
	settings, now := s.Settings(), timestamp(time.Now().Truncate(time.Hour))
	var found []spotPriceItem
	for _, it := range catalogue.Types() {
		if len(names) > 0 && !slices.Contains(names, it.Name) {
			continue
		}
		for _, zone := range s.Zones() {
			price := strconv.FormatFloat(it.SpotUSD(zone), 'f', 6, 64)
			if r.effect.corrupt {
				price = notANumber
			}
			item := spotPriceItem{
				InstanceType: it.Name, Zone: zone, ZoneID: zoneID(zone), Product: linux, Timestamp: now,
				Price: price,
			}
			ok, err := matches(filters, nil, attributes{"instance-type": {it.Name}, "availability-zone": {zone}, "product-description": {linux}})
			if err != nil {
				return nil, err
			}
			asked := r.form.get("AvailabilityZone")
			if ok && settings.offers(it.Name, zone) && (asked == "" || asked == zone) && (len(products) == 0 || slices.Contains(products, linux)) {
				found = append(found, item)
			}
		}
	}
	items, token, err := page(r.form, found, 1, 10000, 1000)
	return spotPricesReply{Prices: items, NextToken: token}, err
}

type priceFilter struct {
	Type  string `json:"Type"`
	Field string `json:"Field"`
	Value string `json:"Value"`
}

// getProducts is the Price List Query API, for EC2 instances on demand.
func getProducts(s *Server, r *request) (any, error) {
	var input struct {
		ServiceCode string        `json:"ServiceCode"`
		Filters     []priceFilter `json:"Filters"`
		MaxResults  int           `json:"MaxResults"`
		NextToken   string        `json:"NextToken"`
	}
	if err := json.Unmarshal(r.body, &input); err != nil {
		return nil, errorf("InvalidParameterException", "reading the request: %v", err)
	}
	if input.ServiceCode != "AmazonEC2" {
		return nil, errorf("InvalidParameterException", "Service code %s is not served by this endpoint", input.ServiceCode)
	}
	settings := s.Settings()
	var products []string
	for _, it := range catalogue.Types() {
		product := s.product(it)
		if product.matches(input.Filters) && !slices.Contains(settings.UnpricedTypes, it.Name) && !slices.Contains(settings.HiddenTypes, it.Name) {
			products = append(products, product.json(r.effect.corrupt))
		}
	}
	paging := form{"NextToken": input.NextToken}
	if input.MaxResults > 0 {
		paging["MaxResults"] = strconv.Itoa(input.MaxResults)
	}
	items, token, err := page(paging, products, 1, 100, 100)
	if err != nil {
		return nil, errorf("InvalidNextTokenException", "%v", err)
	}
	reply := map[string]any{"FormatVersion": "aws_v1", "PriceList": items}
	if token != "" {
		reply["NextToken"] = token
	}
	return reply, nil
}

// product is one row of the price list.
type product struct {
	attributes map[string]string
	usd        float64
}

func (s *Server) product(it catalogue.Type) product {
	tenancy, family := "Shared", "Compute Instance"
	if it.BareMetal {
		tenancy, family = "Dedicated", "Compute Instance (bare metal)"
	}
	return product{usd: it.OnDemandUSD, attributes: map[string]string{
		"regionCode": s.opts.Region, "serviceCode": "AmazonEC2", "servicecode": "AmazonEC2", "preInstalledSw": "NA", "operatingSystem": "Linux", "capacitystatus": "Used",
		"marketoption": "OnDemand", "tenancy": tenancy, "productFamily": family, "instanceType": it.Name,
	}}
}

func (p product) matches(filters []priceFilter) bool {
	for _, filter := range filters {
		if p.attributes[filter.Field] != filter.Value {
			return false
		}
	}
	return true
}

func (p product) json(corrupt bool) string {
	name, usd := p.attributes["instanceType"], strconv.FormatFloat(p.usd, 'f', 10, 64)
	if corrupt {
		usd = notANumber
	}
	data, err := json.Marshal(map[string]any{
		"product": map[string]any{"productFamily": p.attributes["productFamily"], "sku": "SKU-" + name, "attributes": p.attributes},
		"terms": map[string]any{"OnDemand": map[string]any{"SKU-" + name + ".JRTCKXETXF": map[string]any{
			"priceDimensions": map[string]any{"SKU-" + name + ".JRTCKXETXF.6YS6EN2CT7": map[string]any{
				"unit": "Hrs", "description": fmt.Sprintf("$%v per On Demand Linux %s Instance Hour", p.usd, name),
				"pricePerUnit": map[string]string{"USD": usd},
			}},
		}}},
	})
	if err != nil { // strings and numbers always encode
		return "{}"
	}
	return string(data)
}
