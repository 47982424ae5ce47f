// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	"pgregory.net/rapid"
)

// TestCoverIsExact compares covers with plain search over all multisets.
func TestCoverIsExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		items := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) item {
			return item{k: rapid.IntRange(1, 7).Draw(t, "k"), w: rapid.Int64Range(1, 20).Draw(t, "w")}
		}), 1, 4).Draw(t, "items")
		for i := range items {
			items[i].id = i
		}
		n := rapid.IntRange(1, 12).Draw(t, "n")
		cover := newCover(items, n)
		if got, want := cover.cost(n), search(items, n); got != want {
			t.Fatalf("cost %d, want %d", got, want)
		}
		held, paid := 0, int64(0)
		for _, it := range cover.picks(n) {
			held += it.k
			paid += it.w
		}
		if held < n || paid != cover.cost(n) {
			t.Fatalf("picks hold %d of %d pods and cost %d of %d", held, n, paid, cover.cost(n))
		}
	})
}

func search(items []item, n int) int64 {
	if n <= 0 {
		return 0
	}
	best := int64(-1)
	for _, it := range items {
		if w := it.w + search(items, n-it.k); best < 0 || w < best {
			best = w
		}
	}
	return best
}

func TestCoverOfManyPods(t *testing.T) {
	t.Parallel()
	cover := newCover([]item{{k: 191, w: 7344, id: 0}, {k: 1, w: 76, id: 1}}, 100000)
	if got, least := cover.cost(100000), int64(100000)*7344/191; got < least || got > least*1001/1000 {
		t.Errorf("cost %d, want near %d", got, least)
	}
	held := 0
	for _, it := range cover.picks(100000) {
		held += it.k
	}
	if held < 100000 {
		t.Errorf("%d pods covered", held)
	}
}

func TestCoverPrefersFewerNodes(t *testing.T) {
	t.Parallel()
	cover := newCover([]item{{k: 1, w: 10, id: 0}, {k: 4, w: 40, id: 1}}, 4)
	if got := cover.picks(4); len(got) != 1 {
		t.Errorf("%d nodes for 4 pods at equal cost, want 1", len(got))
	}
}
