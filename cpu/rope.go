package cpu

import (
	"math"
	"slices"

	"triax/tensor"
)

func (d *core[T]) Rope(x, positions *tensor.Tensor, heads int, freq []float64, inverse bool) {
	r := d.turning(x, positions, heads, freq, inverse)
	r.x = tensor.Slice[T](x)
	d.team.split(positions.Len(), 1, 4*x.Len(), r)
}

// turning is the task of turning x, which is still to be set.
func (d *core[T]) turning(x, positions *tensor.Tensor, heads int, freq []float64, inverse bool) *ropeTask[T] {
	rows := positions.Len()
	demand(heads > 0 && rowsOf(x) == rows && colsOf(x) == 2*heads*len(freq), "Rope", x, positions)
	r := &d.ops.rope
	r.positions, r.heads, r.dim = positions.I32(), heads, colsOf(x)/heads
	r.sign = 1
	if inverse {
		r.sign = -1
	}
	r.rows = d.rows
	r.frequencies(freq, d.opts.Threads)
	r.remember()
	return r
}

type ropeTask[T float] struct {
	x         []T
	positions []int32
	heads     int
	dim       int // of a head
	sign      T
	freq      []float64 // radians a position, by pair
	table     []T       // the turns of the first positions: dim/2 cosines, then as many sines
	turns     [][]T     // by worker: the turn of a later position
	rows      *rowOps
}

// frequencies keeps what is computed from them from call to call.
func (r *ropeTask[T]) frequencies(freq []float64, threads int) {
	if slices.Equal(r.freq, freq) {
		return
	}
	r.freq, r.table, r.turns = freq, nil, make([][]T, threads)
	for w := range r.turns {
		r.turns[w] = make([]T, r.dim)
	}
}

// tablePositions is how many positions' turns are kept.
const tablePositions = 1 << 13

// remember lets the table hold all positions at hand that are below tablePositions.
func (r *ropeTask[T]) remember() {
	var top int32 = -1
	for _, p := range r.positions {
		top = max(top, min(p, tablePositions-1))
	}
	for p := len(r.table) / r.dim; p <= int(top); p++ {
		r.table = append(r.table, r.compute(r.turns[0], p)...)
	}
}

// compute is the turn of position p.
func (r *ropeTask[T]) compute(turn []T, p int) []T {
	for i, f := range r.freq {
		sin, cos := math.Sincos(float64(p) * f)
		turn[i], turn[len(r.freq)+i] = T(cos), T(sin)
	}
	return turn
}

func (r *ropeTask[T]) run(w, lo, hi int) {
	half := r.dim / 2
	for t := lo; t < hi; t++ {
		var turn []T
		if p := int(r.positions[t]); p >= 0 && p < tablePositions {
			turn = r.table[p*r.dim:][:r.dim]
		} else {
			turn = r.compute(r.turns[w], p)
		}
		for row := r.x[t*r.heads*r.dim:][:r.heads*r.dim]; len(row) > 0; row = row[r.dim:] {
			r.turn(row[:half], row[half:r.dim], turn[:half], turn[half:])
		}
	}
}

// turn turns the pairs of one head.
func (r *ropeTask[T]) turn(x, y, cos, sin []T) {
	if r.rows != nil {
		r.rows.rope(first(x), first(y), first(cos), first(sin), len(x), float32(r.sign))
		return
	}
	for i, a := range x {
		b := y[i]
		c, s := cos[i], sin[i]*r.sign
		x[i], y[i] = a*c-b*s, b*c+a*s
	}
}
