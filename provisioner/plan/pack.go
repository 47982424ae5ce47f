// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"slices"
)

// shape is a machine that several candidates stand for equally.
type shape struct {
	cand  int
	price int64
	free  []int64
	// most is how many pods of each class it may hold at all (zero: none).
	most []int
	// single is true if only one class may use it.
	single bool
}

// problem is to place pods of several classes on new machines at least cost.
type problem struct {
	requests [][]int64
	want     []int
	shapes   []shape
	covers   []*coverTable
}

// packed is one machine of a solution with its number of pods by class.
type packed struct {
	shape int
	fill  []int
}

// solve places all pods. Every class must have a shape that holds one of its pods. One class is solved exactly; for
// several the cheapest of these is taken: each class for itself with gaps filled; greedy mixes under two ways of weighing
// the pods (the class's own cheapest price per pod, and the shadow prices of the resources); and the covering LP over
// fillings of machines, rounded down and completed greedily.
func (pr *problem) solve() []packed {
	pr.covers = make([]*coverTable, len(pr.want))
	for c, n := range pr.want {
		var items []item
		for i := range pr.shapes {
			items = append(items, item{pr.holds(&pr.shapes[i], c), pr.shapes[i].price, i})
		}
		pr.covers[c] = newCover(items, n)
	}
	best := pr.finish(nil, slices.Clone(pr.want))
	if len(pr.want) == 1 {
		return best
	}
	try := func(s []packed) {
		if a, b := pr.cost(s), pr.cost(best); a < b || a == b && len(s) < len(best) {
			best = s
		}
	}
	for _, weights := range [][]float64{pr.pricePerPod(), pr.shadowPrices()} {
		if weights != nil {
			try(pr.greedy(weights, nil, pr.want))
		}
	}
	if taken, left, weights := pr.columns(); weights != nil {
		try(pr.greedy(weights, taken, left))
	}
	return best
}

// holds is how many pods of the class an empty machine takes.
func (pr *problem) holds(s *shape, c int) int {
	if s.most[c] == 0 {
		return 0
	}
	return min(s.most[c], times(pr.requests[c], s.free))
}

func (pr *problem) cost(s []packed) int64 {
	var sum int64
	for _, n := range s {
		sum += pr.shapes[n.shape].price
	}
	return sum
}

// pricePerPod is the least that a pod of each class can cost.
func (pr *problem) pricePerPod() []float64 {
	out := make([]float64, len(pr.want))
	for c := range out {
		out[c] = float64(pr.covers[c].bulk.w) / float64(pr.covers[c].bulk.k)
	}
	return out
}

// greedy continues a partial solution: it takes again and again the machine whose filling is worth most for its price.
// Of all the points at which it could have stopped and let finish do the rest, it returns the cheapest.
func (pr *problem) greedy(weights []float64, taken []packed, left []int) []packed {
	left = slices.Clone(left)
	takenCost := pr.cost(taken)
	bestCost, bestLen := int64(-1), 0
	var bestLeft []int
	for {
		if total := takenCost + pr.finishCost(left); bestCost < 0 || total < bestCost {
			bestCost, bestLen, bestLeft = total, len(taken), slices.Clone(left)
		}
		s, fill := pr.bestShape(weights, left)
		if fill == nil {
			break
		}
		n := repeats(fill, left)
		for range n {
			taken = append(taken, packed{s, slices.Clone(fill)})
		}
		for c := range left {
			left[c] -= n * fill[c]
		}
		takenCost += int64(n) * pr.shapes[s].price
	}
	return pr.finish(taken[:bestLen], bestLeft)
}

// repeats is how often the same filling can be taken.
func repeats(fill, left []int) int {
	n := 0
	for c, k := range fill {
		if k > 0 && (n == 0 || left[c]/k < n) {
			n = left[c] / k
		}
	}
	return n
}

func (pr *problem) bestShape(weights []float64, left []int) (int, []int) {
	best, bestRate := -1, 0.0
	var bestFill []int
	for i := range pr.shapes {
		fill, value := pr.fill(&pr.shapes[i], weights, left)
		if value == 0 {
			continue
		}
		rate := value / float64(max(pr.shapes[i].price, 1))
		if rate > bestRate*(1+1e-12) {
			best, bestRate, bestFill = i, rate, fill
		}
	}
	return best, bestFill
}

// fill puts pods on an empty machine, always of the class that is worth most for what it takes of the room left.
func (pr *problem) fill(s *shape, weights []float64, left []int) (fill []int, value float64) {
	fill = make([]int, len(left))
	free := slices.Clone(s.free)
	for {
		best, n, rivals := pr.densest(s, weights, left, fill, free)
		if best < 0 {
			return fill, value
		}
		if rivals > 1 && !s.single { // in small steps: the scarcity of resources changes on the way
			n = (n + 15) / 16
		}
		fill[best] += n
		value += float64(n) * weights[best]
		subtract(free, pr.requests[best], n)
		if s.single {
			return fill, value
		}
	}
}

// densest is the class worth most per share of the room left, how many of it fit, and how many classes fit at all.
func (pr *problem) densest(s *shape, weights []float64, left, fill []int, free []int64) (best, bestN, rivals int) {
	best, bestRate := -1, 0.0
	for c := range left {
		n := min(left[c]-fill[c], s.most[c]-fill[c])
		if n <= 0 {
			continue
		}
		if n = min(n, times(pr.requests[c], free)); n <= 0 {
			continue
		}
		rivals++
		size := 1e-12
		for r, q := range pr.requests[c] {
			if q > 0 {
				size += float64(q) / float64(free[r])
			}
		}
		rate := weights[c] / size
		if s.single {
			rate = weights[c] * float64(n)
		}
		if rate > bestRate {
			best, bestN, bestRate = c, n, rate
		}
	}
	return best, bestN, rivals
}

// finishCost is what finish would cost at most.
func (pr *problem) finishCost(left []int) int64 {
	var sum int64
	for c, n := range left {
		if n > 0 {
			sum += pr.covers[c].cost(n)
		}
	}
	if s := pr.oneForAll(left); s >= 0 {
		sum = min(sum, pr.shapes[s].price)
	}
	return sum
}

// oneForAll is the cheapest single machine for all that is left, -1 if there is none.
func (pr *problem) oneForAll(left []int) int {
	best := -1
	for i := range pr.shapes {
		if (best < 0 || pr.shapes[i].price < pr.shapes[best].price) && pr.carries(i, left) {
			best = i
		}
	}
	return best
}

// carries says whether one machine of the shape can hold the pods.
func (pr *problem) carries(s int, pods []int) bool {
	sh := &pr.shapes[s]
	classes := 0
	for c, n := range pods {
		if n > sh.most[c] {
			return false
		}
		if n > 0 {
			classes++
		}
	}
	if sh.single && classes > 1 {
		return false
	}
	for r, free := range sh.free {
		for c, n := range pods {
			free -= pr.requests[c][r] * int64(n)
		}
		if free < 0 {
			return false
		}
	}
	return true
}

// finish completes a partial solution: pods left go into gaps of the machines there are, then onto the cheapest cover
// of their class, dearest classes first; or all on one machine if that is cheaper.
func (pr *problem) finish(taken []packed, left []int) []packed {
	out := make([]packed, 0, len(taken)+8)
	for _, n := range taken {
		out = append(out, packed{n.shape, slices.Clone(n.fill)})
	}
	one := pr.oneForAll(left)
	order := make([]int, 0, len(left))
	for c, n := range left {
		if n > 0 {
			order = append(order, c)
		}
	}
	price := func(c int) float64 { return float64(pr.covers[c].bulk.w) / float64(pr.covers[c].bulk.k) }
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(price(b), price(a)) })
	for _, c := range order {
		n := left[c] - pr.fillGaps(out, c, left[c])
		if n <= 0 {
			continue
		}
		for _, it := range pr.covers[c].picks(n) {
			fill := make([]int, len(left))
			fill[c] = min(n, it.k)
			n -= fill[c]
			out = append(out, packed{it.id, fill})
		}
	}
	if one >= 0 && pr.cost(taken)+pr.shapes[one].price <= pr.cost(out) && len(out) > len(taken) {
		all := make([]packed, 0, len(taken)+1)
		all = append(all, taken...)
		out = append(all, packed{one, slices.Clone(left)})
	}
	return pr.shrink(out)
}

// fillGaps puts up to n pods of the class onto machines that have room, and says how many.
func (pr *problem) fillGaps(out []packed, c, n int) int {
	put := 0
	for i := range out {
		if put == n {
			break
		}
		s := &pr.shapes[out[i].shape]
		if s.single || s.most[c] == 0 {
			continue
		}
		free := slices.Clone(s.free)
		for d, k := range out[i].fill {
			subtract(free, pr.requests[d], k)
		}
		k := min(n-put, s.most[c]-out[i].fill[c], times(pr.requests[c], free))
		if k > 0 {
			out[i].fill[c] += k
			put += k
		}
	}
	return put
}

// shrink replaces each machine by the cheapest that holds its pods.
func (pr *problem) shrink(out []packed) []packed {
	for i := range out {
		for s := range pr.shapes {
			if pr.shapes[s].price < pr.shapes[out[i].shape].price && pr.carries(s, out[i].fill) {
				out[i].shape = s
			}
		}
	}
	return out
}
