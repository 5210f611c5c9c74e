package cpu

import (
	"math"

	"triax/tensor"
)

// lossTask holds the three passes of cross-entropy over rows of logits.
type lossTask[T float] struct {
	pass                     lossPass
	logits, max, sum, target []T
	targets                  []int32
	cols, first, valid       int
	scale                    float64
	rows                     *rowOps
}

type lossPass uint8

const (
	passMax lossPass = iota
	passSum
	passGrad
)

func (d *core[T]) RowMax(max, logits *tensor.Tensor, valid int) {
	rows, cols := rowsOf(logits), colsOf(logits)
	demand(max.Len() == rows && valid <= cols, "RowMax", max, logits)
	d.ops.loss = lossTask[T]{pass: passMax, max: tensor.Slice[T](max), logits: tensor.Slice[T](logits), cols: cols, valid: valid, rows: d.rows}
	d.team.split(rows, 1, logits.Len(), &d.ops.loss)
}

func (d *core[T]) RowSum(sum, target, logits, max, targets *tensor.Tensor, lo, valid int) {
	rows, cols := rowsOf(logits), colsOf(logits)
	demand(sum.Len() == rows && target.Len() == rows && max.Len() == rows && targets.Len() == rows && valid <= cols,
		"RowSum", sum, target, logits, max, targets)
	d.ops.loss = lossTask[T]{
		pass: passSum, sum: tensor.Slice[T](sum), target: tensor.Slice[T](target), logits: tensor.Slice[T](logits),
		max: tensor.Slice[T](max), targets: targets.I32(), cols: cols, first: lo, valid: valid, rows: d.rows,
	}
	d.team.split(rows, 1, 16*logits.Len(), &d.ops.loss)
}

func (d *core[T]) LossOf(sum, target, max, targets *tensor.Tensor) float64 {
	sameLen("LossOf", sum, target, max, targets)
	s, z, m := tensor.Slice[T](sum), tensor.Slice[T](target), tensor.Slice[T](max)
	var loss float64
	for t, id := range targets.I32() {
		if id >= 0 {
			loss += math.Log(float64(s[t])) + float64(m[t]) - float64(z[t])
		}
	}
	return loss
}

func (d *core[T]) LossGrad(logits, max, sum, targets *tensor.Tensor, lo, valid int, scale float64) {
	rows, cols := rowsOf(logits), colsOf(logits)
	demand(sum.Len() == rows && max.Len() == rows && targets.Len() == rows && valid <= cols, "LossGrad", logits, max, sum, targets)
	d.ops.loss = lossTask[T]{
		pass: passGrad, logits: tensor.Slice[T](logits), max: tensor.Slice[T](max), sum: tensor.Slice[T](sum),
		targets: targets.I32(), cols: cols, first: lo, valid: valid, scale: scale, rows: d.rows,
	}
	d.team.split(rows, 1, 16*logits.Len(), &d.ops.loss)
}

func (l *lossTask[T]) run(_, lo, hi int) {
	for t := lo; t < hi; t++ {
		row := l.logits[t*l.cols:][:l.cols]
		switch l.pass {
		case passMax:
			if l.rows != nil {
				l.max[t] = T(l.rows.max(first(row), l.valid))
				continue
			}
			m := T(math.Inf(-1))
			for _, z := range row[:l.valid] {
				m = max(m, z)
			}
			l.max[t] = m
		case passSum:
			var s float64
			m := float64(l.max[t])
			if l.rows != nil {
				s = float64(l.rows.expSum(first(row), l.valid, float32(-m)))
			} else {
				for _, z := range row[:l.valid] {
					s += math.Exp(float64(z) - m)
				}
			}
			l.sum[t], l.target[t] = T(s), 0
			if c := l.column(t); c >= 0 {
				l.target[t] = row[c]
			}
		case passGrad:
			l.gradient(t, row)
		}
	}
}

// column is where the row's target is, -1 when it is masked or not held here.
func (l *lossTask[T]) column(t int) int {
	c := int(l.targets[t]) - l.first
	if l.targets[t] < 0 || c < 0 || c >= l.valid {
		return -1
	}
	return c
}

func (l *lossTask[T]) gradient(t int, row []T) {
	if l.targets[t] < 0 {
		clear(row)
		return
	}
	m, f := float64(l.max[t]), l.scale/float64(l.sum[t])
	if l.rows != nil {
		l.rows.exp(first(row), first(row), l.valid, 1, float32(-m), float32(f))
	} else {
		for j, z := range row[:l.valid] {
			row[j] = T(f * math.Exp(float64(z)-m))
		}
	}
	clear(row[l.valid:])
	if c := l.column(t); c >= 0 {
		row[c] -= T(l.scale)
	}
}
