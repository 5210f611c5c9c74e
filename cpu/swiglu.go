package cpu

import (
	"math"

	"triax/tensor"
)

func (d *core[T]) SwiGLU(y, gate, up *tensor.Tensor) {
	n := sameLen("SwiGLU", y, gate, up)
	d.ops.swiglu = swigluTask[T]{y: tensor.Slice[T](y), gate: tensor.Slice[T](gate), up: tensor.Slice[T](up), rows: d.rows}
	d.team.split(n, 256, 16*n, &d.ops.swiglu)
}

func (d *core[T]) SwiGLUGrad(dgate, dup, gate, up, dy *tensor.Tensor) {
	n := sameLen("SwiGLUGrad", dgate, dup, gate, up, dy)
	d.ops.swiglu = swigluTask[T]{
		gate: tensor.Slice[T](gate), up: tensor.Slice[T](up),
		dgate: tensor.Slice[T](dgate), dup: tensor.Slice[T](dup), dy: tensor.Slice[T](dy), rows: d.rows,
	}
	d.team.split(n, 256, 16*n, &d.ops.swiglu)
}

// swigluTask is the forward when y is set, else the backward.
type swigluTask[T float] struct {
	y, gate, up, dgate, dup, dy []T
	rows                        *rowOps
}

func (t *swigluTask[T]) run(_, lo, hi int) {
	if r := t.rows; r != nil {
		if t.y != nil {
			r.swiglu(first(t.y[lo:]), first(t.gate[lo:]), first(t.up[lo:]), hi-lo)
		} else {
			r.swigluGrad(first(t.dgate[lo:]), first(t.dup[lo:]), first(t.gate[lo:]), first(t.up[lo:]), first(t.dy[lo:]), hi-lo)
		}
		return
	}
	for i := lo; i < hi; i++ {
		g, u := float64(t.gate[i]), float64(t.up[i])
		s := 1 / (1 + math.Exp(-g))
		if t.y != nil {
			t.y[i] = T(g * s * u)
			continue
		}
		dy := float64(t.dy[i])
		t.dup[i] = T(dy * g * s)
		t.dgate[i] = T(dy * u * s * (1 + g*(1-s)))
	}
}
