package cpu

import "triax/tensor"

func (d *core[T]) LayerNormInput(dx, dy, x, w, mean, rstd *tensor.Tensor) {
	rows, cols := rowsOf(x), colsOf(x)
	demand(dx.Len() == x.Len() && dy.Len() == x.Len() && w.Len() == cols && mean.Len() == rows && rstd.Len() == rows,
		"LayerNormInput", dx, dy, x, w, mean, rstd)
	d.ops.normIn = normInputTask[T]{
		tensor.Slice[T](dx), tensor.Slice[T](dy), tensor.Slice[T](x), tensor.Slice[T](w), tensor.Slice[T](mean), tensor.Slice[T](rstd), d.rows,
	}
	d.team.split(rows, 1, 4*x.Len(), &d.ops.normIn)
}

func (d *core[T]) RMSNormInput(dx, dy, x, w, rstd *tensor.Tensor) {
	rows, cols := rowsOf(x), colsOf(x)
	demand(dx.Len() == x.Len() && dy.Len() == x.Len() && w.Len() == cols && rstd.Len() == rows,
		"RMSNormInput", dx, dy, x, w, rstd)
	d.ops.normIn = normInputTask[T]{
		tensor.Slice[T](dx), tensor.Slice[T](dy), tensor.Slice[T](x), tensor.Slice[T](w), nil, tensor.Slice[T](rstd), d.rows,
	}
	d.team.split(rows, 1, 4*x.Len(), &d.ops.normIn)
}

// normInputTask: with n = (x - mean) rstd and g = dy w,
// dx = rstd (g - avg(g) - n avg(g n)); RMSNorm (mean nil) has no avg(g) term.
type normInputTask[T float] struct {
	dx, dy, x, w, mean, rstd []T
	rows                     *rowOps
}

func (t *normInputTask[T]) run(_, lo, hi int) {
	f := len(t.w)
	for r := lo; r < hi; r++ {
		dx, dy, x := t.dx[r*f:][:f], t.dy[r*f:][:f], t.x[r*f:][:f]
		rstd, mean := float64(t.rstd[r]), 0.0
		if t.mean != nil {
			mean = float64(t.mean[r])
		}
		if t.rows != nil {
			a, b := t.rows.normSums(first(dy), first(t.w), first(x), f, float32(mean))
			if t.mean == nil {
				a = 0
			}
			t.rows.normGrad(first(dx), first(dy), first(t.w), first(x), f, float32(mean), float32(rstd), a/float32(f), b*float32(rstd)/float32(f))
			continue
		}
		var sum, dot float64
		for j, v := range dy {
			g := float64(v) * float64(t.w[j])
			sum += g
			dot += g * (float64(x[j]) - mean)
		}
		if t.mean == nil {
			sum = 0
		}
		sum /= float64(f)
		dot *= rstd / float64(f)
		for j, v := range dy {
			n := (float64(x[j]) - mean) * rstd
			dx[j] = T(rstd * (float64(v)*float64(t.w[j]) - sum - n*dot))
		}
	}
}

func (d *core[T]) LayerNormWeight(dw, db, dy, x, mean, rstd *tensor.Tensor) {
	rows, cols := rowsOf(x), colsOf(x)
	demand(dw.Len() == cols && db.Len() == cols && dy.Len() == x.Len() && mean.Len() == rows && rstd.Len() == rows,
		"LayerNormWeight", dw, db, dy, x, mean, rstd)
	d.ops.normW = normWeightTask[T]{
		tensor.Slice[T](dw), tensor.Slice[T](db), tensor.Slice[T](dy), tensor.Slice[T](x), tensor.Slice[T](mean), tensor.Slice[T](rstd), d.rows,
	}
	d.team.split(cols, columnUnit, 2*x.Len(), &d.ops.normW)
}

func (d *core[T]) RMSNormWeight(dw, dy, x, rstd *tensor.Tensor) {
	rows, cols := rowsOf(x), colsOf(x)
	demand(dw.Len() == cols && dy.Len() == x.Len() && rstd.Len() == rows, "RMSNormWeight", dw, dy, x, rstd)
	d.ops.normW = normWeightTask[T]{
		tensor.Slice[T](dw), nil, tensor.Slice[T](dy), tensor.Slice[T](x), nil, tensor.Slice[T](rstd), d.rows,
	}
	d.team.split(cols, columnUnit, 2*x.Len(), &d.ops.normW)
}

// normWeightTask cuts by columns: dw += sum over rows of dy n, db += sum of dy, rows in order.
type normWeightTask[T float] struct {
	dw, db, dy, x, mean, rstd []T
	rows                      *rowOps
}

func (t *normWeightTask[T]) run(_, lo, hi int) {
	f := len(t.dw)
	if t.rows != nil {
		for r, rstd := range t.rstd {
			mean := T(0)
			if t.mean != nil {
				mean = t.mean[r]
			}
			t.rows.normWeight(first(t.dw[lo:]), first(t.dy[r*f+lo:]), first(t.x[r*f+lo:]), hi-lo, float32(mean), float32(rstd))
			if t.db != nil {
				t.rows.add(first(t.db[lo:]), first(t.dy[r*f+lo:]), hi-lo)
			}
		}
		return
	}
	for c := lo; c < hi; c += sumColumns {
		var dw, db [sumColumns]float64
		w := min(sumColumns, hi-c)
		for r, rstd := range t.rstd {
			mean := 0.0
			if t.mean != nil {
				mean = float64(t.mean[r])
			}
			dy, x := t.dy[r*f+c:][:w], t.x[r*f+c:][:w]
			for j, g := range dy {
				dw[j] += float64(g) * (float64(x[j]) - mean) * float64(rstd)
				db[j] += float64(g)
			}
		}
		for j := range w {
			t.dw[c+j] = T(float64(t.dw[c+j]) + dw[j])
			if t.db != nil {
				t.db[c+j] = T(float64(t.db[c+j]) + db[j])
			}
		}
	}
}
