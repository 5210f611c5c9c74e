package cpu

import (
	"math"

	"triax/tensor"
)

func (d *core[T]) LayerNorm(y, mean, rstd, x, w, b *tensor.Tensor, eps float64) {
	rows, cols := rowsOf(x), colsOf(x)
	demand(y.Len() == x.Len() && mean.Len() == rows && rstd.Len() == rows && w.Len() == cols && b.Len() == cols,
		"LayerNorm", y, mean, rstd, x, w, b)
	d.ops.norm = normTask[T]{
		y: tensor.Slice[T](y), mean: tensor.Slice[T](mean), rstd: tensor.Slice[T](rstd),
		x: tensor.Slice[T](x), w: tensor.Slice[T](w), b: tensor.Slice[T](b), eps: eps, rows: d.rows,
	}
	d.team.split(rows, 1, 4*x.Len(), &d.ops.norm)
}

func (d *core[T]) RMSNorm(y, rstd, x, w *tensor.Tensor, eps float64) {
	rows, cols := rowsOf(x), colsOf(x)
	demand(y.Len() == x.Len() && rstd.Len() == rows && w.Len() == cols, "RMSNorm", y, rstd, x, w)
	d.ops.norm = normTask[T]{
		y: tensor.Slice[T](y), rstd: tensor.Slice[T](rstd), x: tensor.Slice[T](x), w: tensor.Slice[T](w), eps: eps, rows: d.rows,
	}
	d.team.split(rows, 1, 4*x.Len(), &d.ops.norm)
}

// normTask is LayerNorm, or RMSNorm when mean is nil: y = (x - mean) rstd w (+ b).
type normTask[T float] struct {
	y, mean, rstd, x, w, b []T
	eps                    float64
	rows                   *rowOps
}

func (t *normTask[T]) run(_, lo, hi int) {
	f := len(t.w)
	for r := lo; r < hi; r++ {
		x, y := t.x[r*f:][:f], t.y[r*f:][:f]
		if t.rows != nil {
			t.vectors(r, y, x)
			continue
		}
		var mean float64
		if t.mean != nil {
			for _, v := range x {
				mean += float64(v)
			}
			mean /= float64(f)
			t.mean[r] = T(mean)
		}
		var square float64
		for _, v := range x {
			c := float64(v) - mean
			square += c * c
		}
		rstd := 1 / math.Sqrt(square/float64(f)+t.eps)
		t.rstd[r] = T(rstd)
		for j, v := range x {
			n := (float64(v) - mean) * rstd * float64(t.w[j])
			if t.b != nil {
				n += float64(t.b[j])
			}
			y[j] = T(n)
		}
	}
}

func (t *normTask[T]) vectors(r int, y, x []T) {
	k, n := t.rows, len(x)
	if t.mean == nil {
		rstd := 1 / math.Sqrt(float64(k.squares(first(x), n, 0))/float64(n)+t.eps)
		t.rstd[r] = T(rstd)
		k.rms(first(y), first(x), first(t.w), n, float32(rstd))
		return
	}
	mean := k.sum(first(x), n) / float32(n)
	rstd := 1 / math.Sqrt(float64(k.squares(first(x), n, mean))/float64(n)+t.eps)
	t.mean[r], t.rstd[r] = T(mean), T(rstd)
	k.norm(first(y), first(x), first(t.w), first(t.b), n, mean, float32(rstd))
}
