// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"slices"
)

// maxCover is the number of pods up to which covers are exact; beyond it the best item takes the bulk.
const maxCover = 4096

// item is a machine seen by one class: it holds at most k of its pods, and costs w.
type item struct {
	k  int
	w  int64
	id int
}

// cell is the best cover of some number of pods: its cost, its nodes, and the item it ends with.
type cell struct {
	w     int64
	nodes int
	item  int
}

// coverTable holds the cheapest covers of 0..n pods; of equal ones the one with fewer nodes.
type coverTable struct {
	items []item
	cells []cell
	bulk  item // takes what is beyond maxCover
}

// newCover solves the unbounded covering knapsack: at least n pods, at least cost. Items must have k and w above zero
// or equal; without any usable item the table is nil.
func newCover(items []item, n int) *coverTable {
	items = front(items)
	if len(items) == 0 {
		return nil
	}
	t := &coverTable{items: items, bulk: items[0]}
	for _, it := range items { // w/k smallest, larger k first
		if it.w*int64(t.bulk.k) < t.bulk.w*int64(it.k) {
			t.bulk = it
		}
	}
	n = min(n, maxCover+t.bulk.k)
	t.cells = make([]cell, n+1)
	for j := 1; j <= n; j++ {
		best := cell{w: -1}
		for i, it := range items {
			rest := t.cells[max(0, j-it.k)]
			w, nodes := rest.w+it.w, rest.nodes+1
			if best.w < 0 || w < best.w || w == best.w && nodes < best.nodes {
				best = cell{w, nodes, i}
			}
		}
		t.cells[j] = best
	}
	return t
}

// cost is the cost of covering n pods.
func (t *coverTable) cost(n int) int64 {
	bulk, rest := t.split(n)
	return int64(bulk)*t.bulk.w + t.cells[rest].w
}

func (t *coverTable) split(n int) (bulk, rest int) {
	if over := n - (len(t.cells) - 1); over > 0 {
		bulk = (over + t.bulk.k - 1) / t.bulk.k
	}
	return bulk, max(0, n-bulk*t.bulk.k)
}

// picks are the items of the cover of n pods, largest first.
func (t *coverTable) picks(n int) []item {
	bulk, rest := t.split(n)
	out := slices.Repeat([]item{t.bulk}, bulk)
	for rest > 0 {
		it := t.items[t.cells[rest].item]
		out = append(out, it)
		rest = max(0, rest-it.k)
	}
	slices.SortStableFunc(out, func(a, b item) int { return cmp.Or(cmp.Compare(b.k, a.k), cmp.Compare(a.w, b.w)) })
	return out
}

// front keeps the items that no other beats in both k and w, largest first; of equal ones the first given.
func front(items []item) []item {
	items = slices.DeleteFunc(slices.Clone(items), func(it item) bool { return it.k <= 0 })
	slices.SortStableFunc(items, func(a, b item) int { return cmp.Or(cmp.Compare(b.k, a.k), cmp.Compare(a.w, b.w)) })
	out := items[:0]
	for _, it := range items {
		if len(out) == 0 || it.w < out[len(out)-1].w {
			out = append(out, it)
		}
	}
	return out
}
