package cpu

import (
	"math"

	"triax/tensor"
)

func (d *core[T]) Rope(x, positions *tensor.Tensor, heads int, base float64, inverse bool) {
	rows := positions.Len()
	demand(heads > 0 && rowsOf(x) == rows && colsOf(x)%(2*heads) == 0, "Rope", x, positions)
	r := &d.ops.rope
	r.x, r.positions, r.heads, r.dim = tensor.Slice[T](x), positions.I32(), heads, colsOf(x)/heads
	r.sign = 1
	if inverse {
		r.sign = -1
	}
	r.frequencies(base)
	d.team.split(rows, 1, 4*x.Len(), r)
}

type ropeTask[T float] struct {
	x         []T
	positions []int32
	heads     int
	dim       int // of a head
	sign      float64
	base      float64
	freq      []float64 // radians a position, by pair
}

// frequencies are base^(-2i/dim), kept from call to call.
func (r *ropeTask[T]) frequencies(base float64) {
	if r.base == base && len(r.freq) == r.dim/2 {
		return
	}
	r.base, r.freq = base, make([]float64, r.dim/2)
	for i := range r.freq {
		r.freq[i] = math.Pow(base, -2*float64(i)/float64(r.dim))
	}
}

func (r *ropeTask[T]) run(_, lo, hi int) {
	half := r.dim / 2
	for t := lo; t < hi; t++ {
		row := r.x[t*r.heads*r.dim:][:r.heads*r.dim]
		for i, f := range r.freq {
			sin, cos := math.Sincos(float64(r.positions[t]) * f)
			s, c := T(sin*r.sign), T(cos)
			for o := i; o < len(row); o += r.dim {
				a, b := row[o], row[o+half]
				row[o], row[o+half] = a*c-b*s, b*c+a*s
			}
		}
	}
}
