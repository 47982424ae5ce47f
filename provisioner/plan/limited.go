// SPDX-License-Identifier: Apache-2.0

package plan

import "slices"

// openLimited opens nodes for as many pods of the class as the limits of its tier's pools allow: as many as possible
// first, then at least cost.
func (p *planner) openLimited(c *class) {
	for _, pl := range c.tiers[c.tier].pools {
		if len(c.rest) == 0 {
			return
		}
		var buys []buy
		for i, v := range c.verdicts {
			cand := p.cands[i]
			if k := min(times(c.request, cand.free), len(c.rest), c.diverseCap(cand)); v.Fits && cand.pool == pl && c.in(cand) && k > 0 && pl.allows(cand.use, 1) {
				buys = append(buys, buy{item{k, cand.price, i}, cand.use})
			}
		}
		for _, it := range coverWithin(buys, len(c.rest), pl) {
			p.commit(p.cands[it.id], []*class{c}, []int{min(it.k, len(c.rest))})
		}
	}
}

// buy is an item and what it takes of the limits.
type buy struct {
	item
	use []int64
}

// coverWithin covers up to n pods within the pool's limits. With one limited resource the number covered is the
// largest possible; with several it may fall short of that.
func coverWithin(buys []buy, n int, pl *pool) []item {
	buys = buyFront(buys)
	use := make(map[int][]int64, len(buys))
	prices := make([]item, 0, len(buys))
	for _, b := range buys {
		use[b.id] = b.use
		prices = append(prices, b.item)
	}
	fits := func(items []item) bool {
		sum := make([]int64, len(pl.limits))
		for _, it := range items {
			for r, u := range use[it.id] {
				sum[r] += u
			}
		}
		return pl.allows(sum, 1)
	}
	t := newCover(prices, n)
	if t == nil {
		return nil
	}
	cheapest := t.picks(n)
	if fits(cheapest) {
		return cheapest
	}
	r := tightest(cheapest, use, pl)
	byUse := make([]item, 0, len(buys))
	for _, b := range buys {
		byUse = append(byUse, item{b.k, b.use[r], b.id})
	}
	t = newCover(byUse, n)
	for ; n > 0; n-- {
		if t.cost(n) <= pl.limits[r].left {
			if items := t.picks(n); fits(items) {
				return cheaper(buys, n, r, pl, items, fits)
			}
		}
	}
	return nil
}

// tightest is the limit that the items exceed by the largest factor.
func tightest(items []item, use map[int][]int64, pl *pool) int {
	best, worst := 0, -1.0
	for r, l := range pl.limits {
		var sum int64
		for _, it := range items {
			sum += use[it.id][r]
		}
		if over := float64(sum) / float64(max(l.left, 1)); over > worst {
			best, worst = r, over
		}
	}
	return best
}

// cheaper looks for a cheaper cover of n pods within the limits than the most frugal one, by pricing the limited
// resource: the lower its price, the cheaper the cover and the more of the resource it takes.
func cheaper(buys []buy, n, r int, pl *pool, frugal []item, fits func([]item) bool) []item {
	price := map[int]int64{}
	for _, b := range buys {
		price[b.id] = b.w
	}
	cost := func(items []item) (sum int64) {
		for _, it := range items {
			sum += price[it.id]
		}
		return sum
	}
	best, bestCost := frugal, cost(frugal)
	low, high := int64(0), int64(1e9)
	for low+1 < high {
		mid := low + (high-low)/2
		items := make([]item, 0, len(buys))
		for _, b := range buys {
			share := float64(b.use[r]) / float64(max(pl.limits[r].left, 1)) * 1e6
			items = append(items, item{b.k, b.w + int64(share)*mid, b.id})
		}
		found := newCover(items, n).picks(n)
		if !fits(found) {
			low = mid
			continue
		}
		high = mid
		if c := cost(found); c < bestCost {
			best, bestCost = found, c
		}
	}
	return best
}

// buyFront drops what another beats in pods, price and every limit.
func buyFront(buys []buy) []buy {
	slices.SortStableFunc(buys, func(a, b buy) int {
		if a.k != b.k {
			return b.k - a.k
		}
		if a.w != b.w {
			if a.w < b.w {
				return -1
			}
			return 1
		}
		return 0
	})
	var out []buy
	for _, b := range buys {
		beaten := slices.ContainsFunc(out, func(o buy) bool {
			if o.k < b.k || o.w > b.w {
				return false
			}
			for r := range b.use {
				if o.use[r] > b.use[r] {
					return false
				}
			}
			return true
		})
		if !beaten {
			out = append(out, b)
		}
	}
	return out
}
