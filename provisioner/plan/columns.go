// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"math"
	"slices"
)

const (
	// columnRounds bounds the rounds of column generation, columnTries the machines looked at closely in each.
	columnRounds = 16
	columnTries  = 6
	// pairSteps is in how many proportions two classes are tried together.
	pairSteps = 8
)

// column is a machine with its pods, as a variable of the covering LP.
type column struct {
	packed
	value float64
}

// columns solves the LP of covering all pods by fillings of machines, as far as its search for fillings goes: it
// returns the whole machines of the solution, what they leave, and what a pod of each class is worth in it.
func (pr *problem) columns() (taken []packed, left []int, weights []float64) {
	var basis []packed
	for c, n := range pr.want {
		fill := make([]int, len(pr.want))
		fill[c] = min(n, pr.covers[c].bulk.k)
		basis = append(basis, packed{pr.covers[c].bulk.id, fill})
	}
	var times []float64
	for range columnRounds {
		weights, times = pr.master(basis)
		if weights == nil {
			return nil, nil, nil
		}
		used := basis[:0:0]
		for i, x := range times {
			if x > 1e-9 {
				used = append(used, basis[i])
			}
		}
		better := pr.betterColumns(weights)
		if len(better) == 0 {
			break
		}
		basis = append(used, better...)
	}
	left = slices.Clone(pr.want)
	for i, x := range times {
		if i >= len(basis) {
			break
		}
		for range min(int(math.Floor(x+1e-6)), repeats(basis[i].fill, left)) {
			taken = append(taken, packed{basis[i].shape, slices.Clone(basis[i].fill)})
			for c, k := range basis[i].fill {
				left[c] -= k
			}
		}
	}
	return taken, left, weights
}

// master gives the worth of a pod of each class, in billionths of a USD per hour, and how often each filling is used.
func (pr *problem) master(basis []packed) (weights, times []float64) {
	rows := make([][]float64, len(basis))
	prices := make([]float64, len(basis))
	for i, b := range basis {
		rows[i] = make([]float64, len(pr.want))
		for c, k := range b.fill {
			rows[i][c] = float64(k) / float64(pr.want[c])
		}
		prices[i] = float64(pr.shapes[b.shape].price) / 1e9
	}
	values, times := maximize(rows, prices)
	if values == nil {
		return nil, nil
	}
	for c := range values {
		values[c] *= 1e9 / float64(pr.want[c])
	}
	return values, times
}

// betterColumns are fillings worth more than their machine costs.
func (pr *problem) betterColumns(weights []float64) []packed {
	var all []column
	for i := range pr.shapes {
		if fill, value := pr.fill(&pr.shapes[i], weights, pr.want); value > 0 {
			all = append(all, column{packed{i, fill}, value / float64(max(pr.shapes[i].price, 1))})
		}
	}
	slices.SortStableFunc(all, func(a, b column) int { return cmp.Compare(b.value, a.value) })
	var out []packed
	for _, c := range all[:min(columnTries, len(all))] {
		if pair := pr.bestPair(c.shape, weights); pair.value > c.value {
			c = pair
		}
		if c.value > 1+1e-6 {
			out = append(out, c.packed)
		}
	}
	return out
}

// bestPair fills a machine with two classes in several proportions, and with what else fits.
func (pr *problem) bestPair(shape int, weights []float64) column {
	s := &pr.shapes[shape]
	best := column{packed: packed{shape: shape}}
	if s.single {
		return best
	}
	for a := range pr.want {
		most := min(pr.want[a], pr.holds(s, a))
		for step := range pairSteps + 1 {
			k := most * step / pairSteps
			for b := range pr.want {
				if a == b || k == 0 {
					continue
				}
				fill := make([]int, len(pr.want))
				fill[a] = k
				for _, c := range []int{b, a} {
					fill[c] += pr.more(s, fill, c)
				}
				for c := range pr.want {
					fill[c] += pr.more(s, fill, c)
				}
				value := 0.0
				for c, n := range fill {
					value += float64(n) * weights[c]
				}
				if value /= float64(max(s.price, 1)); value > best.value {
					best.fill, best.value = fill, value
				}
			}
		}
	}
	return best
}

// more is how many more pods of the class fit beside a filling.
func (pr *problem) more(s *shape, fill []int, c int) int {
	n := min(pr.want[c], s.most[c]) - fill[c]
	for r, q := range pr.requests[c] {
		if q == 0 || n <= 0 {
			continue
		}
		free := s.free[r]
		for d, k := range fill {
			free -= pr.requests[d][r] * int64(k)
		}
		n = min(n, int(max(free, 0)/q))
	}
	return max(n, 0)
}
