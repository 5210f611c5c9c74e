package cpu

import "math"

// What attention does to a row of scores, in vectors where the processor has them.

// dropRow applies dropout to a query's weights (or their gradients).
func (a *tiledAttention[T]) dropRow(row []T, b queries, s int) {
	if a.at.Rate == 0 || len(row) == 0 {
		return
	}
	base, scale := a.dropBase(b.sample, b.head, s), T(1/(1-a.at.Rate))
	if a.rows != nil && a.rows.dropout != nil {
		state, _, limit := a.mask.Stream(base)
		a.rows.dropout(first(row), first(row), len(row), state, limit, float32(scale))
		return
	}
	for j := range row {
		if a.mask.Keeps(base + uint64(j)) {
			row[j] *= scale
		} else {
			row[j] = 0
		}
	}
}

// blindRow sets the scores of keys that query s does not see to -Inf.
func (a *tiledAttention[T]) blindRow(row []T, sample, s int) {
	if a.rows != nil {
		own := a.segments[sample*a.at.Seq+s]
		a.rows.blind(first(row), &a.keySegments[sample*a.at.Seq], len(row), own)
		return
	}
	for j := range row {
		if !a.sees(sample, s, j) {
			row[j] = T(math.Inf(-1))
		}
	}
}

func (a *tiledAttention[T]) rowMax(row []T) T {
	if a.rows != nil {
		return T(a.rows.max(first(row), len(row)))
	}
	top := T(math.Inf(-1))
	for _, x := range row {
		top = max(top, x)
	}
	return top
}

func (a *tiledAttention[T]) rowScale(row []T, s T) {
	if a.rows != nil {
		a.rows.scale(first(row), len(row), float32(s))
		return
	}
	for j := range row {
		row[j] *= s
	}
}

// rowExp: row = exp(scale row + shift); it returns the sum.
func (a *tiledAttention[T]) rowExp(row []T, shift T) T {
	if a.rows != nil {
		return T(a.rows.exp(first(row), first(row), len(row), float32(a.scale), float32(shift), 1))
	}
	var sum T
	for j, x := range row {
		row[j] = T(math.Exp(a.scale*float64(x) + float64(shift)))
		sum += row[j]
	}
	return sum
}

func (a *tiledAttention[T]) rowDot(x, y []T) T {
	if a.rows != nil {
		return T(a.rows.dot(first(x), first(y), len(x)))
	}
	return T(dot(x, y))
}

// rowScores: dp = scale p (dp - delta).
func (a *tiledAttention[T]) rowScores(dp, p []T, delta T) {
	if a.rows != nil {
		a.rows.scores(first(dp), first(p), first(dp), len(dp), float32(delta), float32(a.scale))
		return
	}
	for j := range dp {
		dp[j] = T(a.scale) * p[j] * (dp[j] - delta)
	}
}
