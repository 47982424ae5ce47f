// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"time"
)

// price is what an instance costs in USD/h: what the fake charges for it, else
// the catalogue's on-demand price.
func price(i *Instance, catalogue map[string]float64) float64 {
	if i.PriceUSDPerHour > 0 {
		return i.PriceUSDPerHour
	}
	return catalogue[i.InstanceType]
}

// USDPerHourAt is what the instances that existed at t cost.
func (s *State) USDPerHourAt(t time.Time) float64 {
	sum := 0.0
	for _, instance := range s.instances {
		if instance.aliveAt(t) {
			sum += price(&instance, s.prices)
		}
	}
	return sum
}

// peakUSDPerHour is the most that the instances cost at any time.
func (s *State) peakUSDPerHour() float64 {
	peak := 0.0
	for _, instance := range s.instances {
		peak = max(peak, s.USDPerHourAt(instance.LaunchedAt.Time))
	}
	return peak
}

// totalUSD is what the instances cost until end.
func (s *State) totalUSD(end time.Time) float64 {
	sum := 0.0
	for _, instance := range s.instances {
		until, ended := instance.end()
		if !ended || until.After(end) {
			until = end
		}
		sum += price(&instance, s.prices) * until.Sub(instance.LaunchedAt.Time).Hours()
	}
	return sum
}
