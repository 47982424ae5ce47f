// SPDX-License-Identifier: Apache-2.0

package plan

// shadowPrices weighs a pod of each class by the dual of the covering LP (machines in fractions that cover the summed
// requests at least price): what its CPU, memory and slot are worth. nil if the LP gives nothing.
func (pr *problem) shadowPrices() []float64 {
	demand := make([]float64, len(pr.requests[0]))
	for c, n := range pr.want {
		for r, q := range pr.requests[c] {
			demand[r] += float64(q) * float64(n)
		}
	}
	var used []int
	for r, d := range demand {
		if d > 0 {
			used = append(used, r)
		}
	}
	rows := make([][]float64, len(pr.shapes))
	prices := make([]float64, len(pr.shapes))
	for i, s := range pr.shapes {
		rows[i] = make([]float64, len(used))
		for j, r := range used {
			rows[i][j] = float64(max(s.free[r], 0)) / demand[r]
		}
		prices[i] = float64(s.price) / 1e9
	}
	value, _ := maximize(rows, prices)
	if value == nil {
		return nil
	}
	out := make([]float64, len(pr.want))
	for c := range out {
		for j, r := range used {
			out[c] += value[j] * float64(pr.requests[c][r]) / demand[r]
		}
		if out[c] <= 0 {
			return nil
		}
	}
	return out
}

// maximize solves max sum(x) over x >= 0 with rows·x <= bounds (all bounds >= 0) by the tableau simplex, and gives the
// dual value of each row as well; nil if it is unbounded or does not end in time.
func maximize(rows [][]float64, bounds []float64) (x, dual []float64) {
	m, n := len(rows), 0
	if m > 0 {
		n = len(rows[0])
	}
	width := n + m + 1
	t := make([][]float64, m+1)
	basis := make([]int, m)
	for i := range m {
		t[i] = make([]float64, width)
		copy(t[i], rows[i])
		t[i][n+i], t[i][width-1], basis[i] = 1, bounds[i], n+i
	}
	t[m] = make([]float64, width)
	for j := range n {
		t[m][j] = -1
	}
	for range 64 {
		col, least := -1, -1e-9
		for j := range width - 1 {
			if t[m][j] < least {
				col, least = j, t[m][j]
			}
		}
		if col < 0 {
			x = make([]float64, n)
			for i, b := range basis {
				if b < n {
					x[b] = t[i][width-1]
				}
			}
			return x, t[m][n : n+m]
		}
		row := -1
		for i := range m {
			if t[i][col] > 1e-12 && (row < 0 || t[i][width-1]/t[i][col] < t[row][width-1]/t[row][col]) {
				row = i
			}
		}
		if row < 0 {
			return nil, nil
		}
		pivot(t, row, col)
		basis[row] = col
	}
	return nil, nil
}

func pivot(t [][]float64, row, col int) {
	p := t[row][col]
	for j := range t[row] {
		t[row][j] /= p
	}
	for i := range t {
		if f := t[i][col]; i != row && f != 0 {
			for j := range t[i] {
				t[i][j] -= f * t[row][j]
			}
		}
	}
}
