// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"context"
	"maps"
	"strings"
	"time"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider"
	"github.com/jit-scheduler/jit-scheduler/provisioner/cloudprovider/pricefile"
)

const (
	// onDemandWait is how long a class waits for the price list service, which is slow; older or built-in prices have
	// to do after that, until it has answered.
	onDemandWait = 5 * time.Second
	// onDemandTimeout bounds one read of the whole price list.
	onDemandTimeout = 3 * time.Minute
)

// prices are what offerings cost. The value is replaced, never changed.
type prices struct {
	builtIn  builtIn
	onDemand map[string]float64   // by instance type, as read from the price list service
	spot     map[spotPool]float64 // as of the last read
	file     *pricefile.File      // the operator's rules

	onDemandAgain, spotAgain schedule
}

type spotPool struct{ instanceType, zone string }

// same compares what offerings depend on.
func (p *prices) same(q *prices) bool {
	return p.file == q.file && maps.Equal(p.onDemand, q.onDemand) && maps.Equal(p.spot, q.spot)
}

// of is what an offering costs per hour; false if that is not known, so that it cannot be compared with others.
func (p *prices) of(h *hardware, offering *cloudprovider.Offering) (float64, bool) {
	var price float64
	var known bool
	if offering.CapacityType == spot {
		price, known = p.spot[spotPool{h.name, offering.Zone}]
	} else if price, known = p.onDemand[h.name]; !known {
		price, known = p.builtIn.prices[h.name]
	}
	return p.file.Price(func(key string) (string, bool) {
		switch key {
		case v1.LabelTopologyZone:
			return offering.Zone, true
		case awsv1.LabelTopologyZoneID:
			return offering.ZoneID, offering.ZoneID != ""
		case karpv1.CapacityTypeLabelKey:
			return offering.CapacityType, true
		}
		value, ok := h.labels[key]
		return value, ok
	}, price, known)
}

// priceRead is the outcome of reading the price list.
type priceRead struct {
	prices map[string]float64
	err    error
}

// refreshOnDemand asks the price list service if that is due, and takes what it has answered. It does not wait for it
// long. The caller holds p.refreshing.
func (p *Provider) refreshOnDemand(ctx context.Context, next *prices, now time.Time) {
	logger := klog.FromContext(ctx)
	if p.opts.IsolatedVPC || pricingRegion(p.region) == "" {
		if p.said.news("on-demand prices", "built in") {
			logger.Info("On-demand prices are built in: the price list service is not asked", "region", p.region, "pricesOf", next.builtIn.region, "date", next.builtIn.date)
		}
		return
	}
	if p.priceReads == nil {
		if !next.onDemandAgain.due(now) {
			return
		}
		reads := make(chan priceRead, 1)
		p.priceReads = reads
		go func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), onDemandTimeout)
			defer cancel()
			prices, err := p.readOnDemandPrices(ctx)
			reads <- priceRead{prices, err}
		}()
	}
	timer := time.NewTimer(p.priceWait)
	defer timer.Stop()
	select {
	case read := <-p.priceReads:
		p.priceReads = nil
		next.takeOnDemand(read, now)
		p.sayOnDemand(logger, next, read.err)
	case <-ctx.Done():
	case <-timer.C:
		if next.onDemand == nil && p.said.news("first on-demand prices", "awaited") {
			logger.Info("On-demand prices are those built in until the price list service answers", "pricesOf", next.builtIn.region, "date", next.builtIn.date)
		}
	}
}

// takeOnDemand lays what was read over what is known: a type that is missing in an answer keeps its price.
func (p *prices) takeOnDemand(read priceRead, now time.Time) {
	if len(read.prices) > 0 {
		merged := maps.Clone(p.onDemand)
		if merged == nil {
			merged = make(map[string]float64, len(read.prices))
		}
		maps.Copy(merged, read.prices)
		p.onDemand = merged
	}
	if read.err != nil {
		p.onDemandAgain.failed(now)
	} else {
		p.onDemandAgain.read(now, onDemandTTL)
	}
}

func (p *Provider) sayOnDemand(logger klog.Logger, now *prices, err error) {
	text := ""
	if err != nil {
		text = describe(err)
	}
	switch {
	case !p.said.news("on-demand prices", text):
	case err == nil:
		logger.Info("On-demand prices are read again", "types", len(now.onDemand))
	default:
		logger.Error(nil, "On-demand prices cannot be read; those known last are used, and for other types those built in",
			"reason", text, "known", len(now.onDemand), "pricesOf", now.builtIn.region, "date", now.builtIn.date)
	}
}

// refreshSpot reads spot prices if that is due. Unlike the price list EC2 is quick, and there is nothing to go by without
// them. The old ones stay in force when it fails.
func (p *Provider) refreshSpot(ctx context.Context, next *prices, now time.Time) {
	if !next.spotAgain.due(now) {
		return
	}
	logger := klog.FromContext(ctx)
	read, err := p.readSpotPrices(ctx)
	if err != nil {
		next.spotAgain.failed(now)
		if ctx.Err() == nil && p.said.news("spot prices", describe(err)) {
			logger.Error(nil, "Spot prices cannot be read; those known last are used, and without one no spot machine is launched",
				"reason", describe(err), "known", len(next.spot))
		}
		return
	}
	next.spot = read
	next.spotAgain.read(now, spotTTL)
	if p.said.news("spot prices", "") {
		logger.Info("Spot prices are read again", "pools", len(read))
	}
}

// SetPrices puts the operator's rules in force, for everything that is decided from now on.
func (p *Provider) SetPrices(file *pricefile.File) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.priceFile = file
	if p.catalogue == nil {
		return
	}
	next := *p.catalogue
	next.prices.file = file
	next.version++
	p.catalogue = &next
	for name, c := range p.classes {
		p.classes[name] = c.repriced(&next)
	}
}

// repriced is the class over another catalogue; as it was if that cannot be, which Resolve will tell.
func (c *class) repriced(sold *catalogue) *class {
	next := *c
	next.catalogue, next.shown = sold, nil
	if err := next.assemble(nil); err != nil {
		return c
	}
	return &next
}

// sayUnpriced logs which types are not launched because nobody knows what they cost; p.mu is held.
func (p *Provider) sayUnpriced(logger klog.Logger, c *class) {
	const some = 10
	var names []string
	for _, t := range c.types {
		if len(t.Offerings) == 0 {
			names = append(names, t.Name)
		}
	}
	text := strings.Join(names, " ")
	if len(names) == 0 || !p.said.news("unpriced types of "+c.object.Name, text) {
		return
	}
	logger.Info("Instance types whose price is not known are not launched; a price file can name it", "ec2NodeClass", c.object.Name,
		"count", len(names), "some", names[:min(some, len(names))])
}
