package cpu

import (
	"math"

	"triax/tensor"
)

func (d *core[T]) AdamW(w, g, m, v *tensor.Tensor, u tensor.AdamW) {
	n := sameLen("AdamW", w, g, m, v)
	d.ops.adamw = adamwTask[T]{tensor.Slice[T](w), tensor.Slice[T](g), tensor.Slice[T](m), tensor.Slice[T](v), adamwFactors(u), d.rows}
	d.team.split(n, 256, 4*n, &d.ops.adamw)
}

type adamwTask[T float] struct {
	w, g, m, v []T
	f          factors
	rows       *rowOps
}

// factors are the numbers of one AdamW step. The bias corrections are folded into the rate and eps:
// rate mhat / (sqrt(vhat) + eps) = step m / (sqrt(v) + eps'), step = rate sqrt(1-beta2^t)/(1-beta1^t),
// eps' = eps sqrt(1-beta2^t) (Kingma & Ba 2015, end of §2).
type factors struct {
	scale, beta1, beta2 float64
	step, eps           float64
	keep                float64 // 1 - rate decay
}

func adamwFactors(u tensor.AdamW) factors {
	c1 := 1 - math.Pow(u.Beta1, float64(u.Step))
	c2 := math.Sqrt(1 - math.Pow(u.Beta2, float64(u.Step)))
	return factors{
		scale: u.Scale, beta1: u.Beta1, beta2: u.Beta2,
		step: u.Rate * c2 / c1, eps: u.Eps * c2, keep: 1 - u.Rate*u.Decay,
	}
}

func (t *adamwTask[T]) run(_, lo, hi int) {
	f := &t.f
	if t.rows != nil {
		t.rows.adamw(first(t.w[lo:]), first(t.g[lo:]), first(t.m[lo:]), first(t.v[lo:]), hi-lo, float32(f.scale),
			float32(f.beta1), float32(1-f.beta1), float32(f.beta2), float32(1-f.beta2), float32(f.step), float32(f.eps), float32(f.keep))
		return
	}
	w, g, m, v := t.w[lo:hi], t.g[lo:hi], t.m[lo:hi], t.v[lo:hi]
	for i := range w {
		x := float64(g[i]) * f.scale
		mi := f.beta1*float64(m[i]) + (1-f.beta1)*x
		vi := f.beta2*float64(v[i]) + (1-f.beta2)*x*x
		m[i], v[i] = T(mi), T(vi)
		w[i] = T(float64(w[i])*f.keep - f.step*mi/(math.Sqrt(vi)+f.eps))
	}
}

func (d *core[T]) SGD(w, g, m *tensor.Tensor, u tensor.SGD) {
	n := sameLen("SGD", w, g)
	d.ops.sgd = sgdTask[T]{w: tensor.Slice[T](w), g: tensor.Slice[T](g), u: u, rows: d.rows}
	if m != nil {
		sameLen("SGD", w, m)
		d.ops.sgd.m = tensor.Slice[T](m)
	}
	demand(m != nil || u.Momentum == 0, "SGD: momentum without m", w, g)
	d.team.split(n, 256, 2*n, &d.ops.sgd)
}

type sgdTask[T float] struct {
	w, g, m []T
	u       tensor.SGD
	rows    *rowOps
}

func (t *sgdTask[T]) run(_, lo, hi int) {
	if t.rows != nil {
		t.vectors(lo, hi)
		return
	}
	for i := lo; i < hi; i++ {
		step := t.u.Scale*float64(t.g[i]) + t.u.Decay*float64(t.w[i])
		if t.m != nil {
			step += t.u.Momentum * float64(t.m[i])
			t.m[i] = T(step)
		}
		t.w[i] = T(float64(t.w[i]) - t.u.Rate*step)
	}
}

func (t *sgdTask[T]) vectors(lo, hi int) {
	w, g, n := first(t.w[lo:]), first(t.g[lo:]), hi-lo
	rate, scale, decay := float32(t.u.Rate), float32(t.u.Scale), float32(t.u.Decay)
	if t.m == nil {
		t.rows.sgd(w, g, n, rate, scale, decay)
		return
	}
	t.rows.momentum(w, g, first(t.m[lo:]), n, rate, float32(t.u.Momentum), scale, decay)
}

// squaresChunk is the run of elements summed by itself; the chunks' sums are added in order.
const squaresChunk = 1 << 14

func (d *core[T]) SumSquares(t *tensor.Tensor) float64 {
	s := &d.ops.squares
	s.x, s.rows = tensor.Slice[T](t), d.rows
	chunks := (len(s.x) + squaresChunk - 1) / squaresChunk
	if cap(s.sums) < chunks {
		s.sums = make([]float64, chunks)
	}
	s.sums = s.sums[:chunks]
	d.team.split(chunks, 1, len(s.x), s)
	var sum float64
	for _, c := range s.sums {
		sum += c
	}
	return sum
}

type squaresTask[T float] struct {
	x    []T
	sums []float64
	rows *rowOps
}

func (t *squaresTask[T]) run(_, lo, hi int) {
	for c := lo; c < hi; c++ {
		var sum float64
		x := t.x[c*squaresChunk : min((c+1)*squaresChunk, len(t.x))]
		if r := t.rows; r != nil && len(x) >= r.group {
			groups := len(x) / r.group
			sum = r.sumSquares(first(x), groups)
			x = x[groups*r.group:]
		}
		for _, x := range x {
			sum += float64(x) * float64(x)
		}
		t.sums[c] = sum
	}
}
