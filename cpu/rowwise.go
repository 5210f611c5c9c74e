package cpu

import "triax/tensor"

func (d *core[T]) ScaleRows(y, x, s *tensor.Tensor) {
	rows, n := rowsOf(x), x.Len()
	demand(y.Len() == n && s.Len() == rows, "ScaleRows", y, x, s)
	d.ops.rowwise = rowwiseTask[T]{y: tensor.Slice[T](y), x: tensor.Slice[T](x), s: tensor.Slice[T](s), cols: colsOf(x), rows: d.rows}
	d.team.split(rows, 1, n, &d.ops.rowwise)
}

func (d *core[T]) DotRows(s, x, y *tensor.Tensor) {
	rows, n := rowsOf(x), x.Len()
	demand(y.Len() == n && s.Len() == rows, "DotRows", s, x, y)
	d.ops.rowwise = rowwiseTask[T]{y: tensor.Slice[T](y), x: tensor.Slice[T](x), s: tensor.Slice[T](s), cols: colsOf(x), dot: true, rows: d.rows}
	d.team.split(rows, 1, n, &d.ops.rowwise)
}

// rowwiseTask is y = x s, or with dot s = x . y, row by row.
type rowwiseTask[T float] struct {
	y, x, s []T
	cols    int
	dot     bool
	rows    *rowOps
}

func (t *rowwiseTask[T]) run(_, lo, hi int) {
	for r := lo; r < hi; r++ {
		x, y := t.x[r*t.cols:][:t.cols], t.y[r*t.cols:][:t.cols]
		switch {
		case t.dot && t.rows != nil:
			t.s[r] = T(t.rows.dot(first(x), first(y), t.cols))
		case t.dot:
			t.s[r] = T(dot(x, y))
		case t.rows != nil:
			t.rows.scaleTo(first(y), first(x), t.cols, float32(t.s[r]))
		default:
			for j, v := range x {
				y[j] = v * t.s[r]
			}
		}
	}
}
