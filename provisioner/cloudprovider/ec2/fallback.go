// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	_ "embed"
	"strings"
	"sync"
)

//go:embed prices.tsv
var priceTable string

// builtIn are a region's on-demand prices as they were on some day.
type builtIn struct {
	region, date string
	prices       map[string]float64 // per hour by instance type, in the region's currency
}

// builtIns are by region; a line that does not parse is left out.
var builtIns = sync.OnceValue(func() map[string]builtIn {
	tables := map[string]builtIn{}
	var prices map[string]float64
	for line := range strings.Lines(priceTable) {
		line = strings.TrimSpace(line)
		if head, ok := strings.CutPrefix(line, "= "); ok {
			fields := strings.Split(head, "\t")
			prices = map[string]float64{}
			tables[fields[0]] = builtIn{region: fields[0], date: fields[1], prices: prices}
			continue
		}
		name, text, ok := strings.Cut(line, "\t")
		if price, valid := parsePrice(text); ok && valid && prices != nil {
			prices[name] = price
		}
	}
	return tables
})

// builtInPrices are what prices begin with in a region: its own table, else the one of its partition, whose prices
// stand in the same relation to each other, nearly.
func builtInPrices(region string) builtIn {
	if table, ok := builtIns()[region]; ok {
		return table
	}
	of := "us-east-1"
	switch {
	case strings.HasPrefix(region, "cn-"):
		of = "cn-north-1"
	case strings.HasPrefix(region, "us-gov-"):
		of = "us-gov-west-1"
	}
	return builtIns()[of]
}
