package cpu

import "triax/tensor"

func (d *core[T]) AddBias(y, b *tensor.Tensor) {
	demand(colsOf(y) == b.Len(), "AddBias", y, b)
	d.ops.addBias = addBiasTask[T]{tensor.Slice[T](y), tensor.Slice[T](b), d.rows}
	d.team.split(rowsOf(y), 1, y.Len(), &d.ops.addBias)
}

type addBiasTask[T float] struct {
	y, b []T
	rows *rowOps
}

func (t *addBiasTask[T]) run(_, lo, hi int) {
	f := len(t.b)
	for r := lo; r < hi; r++ {
		y := t.y[r*f:][:f]
		if t.rows != nil {
			t.rows.add(first(y), first(t.b), f)
			continue
		}
		for j, b := range t.b {
			y[j] += b
		}
	}
}

// BiasGrad cuts by columns, so that each sum runs over all rows in order.
func (d *core[T]) BiasGrad(db, dy *tensor.Tensor) {
	demand(colsOf(dy) == db.Len(), "BiasGrad", db, dy)
	d.ops.biasGrad = biasGradTask[T]{tensor.Slice[T](db), tensor.Slice[T](dy), d.rows}
	d.team.split(db.Len(), columnUnit, dy.Len(), &d.ops.biasGrad)
}

type biasGradTask[T float] struct {
	db, dy []T
	rows   *rowOps
}

// columnUnit is the least width of a piece where threads share out columns: narrower ones read memory in fragments.
const columnUnit = 2 * sumColumns

// sumColumns is the width of the strip of columns whose sums are kept at hand, in float64.
const sumColumns = 64

func (t *biasGradTask[T]) run(_, lo, hi int) {
	f := len(t.db)
	if t.rows != nil {
		for o := lo; o < len(t.dy); o += f {
			t.rows.add(first(t.db[lo:]), first(t.dy[o:]), hi-lo)
		}
		return
	}
	for c := lo; c < hi; c += sumColumns {
		var sums [sumColumns]float64
		w := min(sumColumns, hi-c)
		for o := c; o < len(t.dy); o += f {
			for j, x := range t.dy[o:][:w] {
				sums[j] += float64(x)
			}
		}
		for j := range w {
			t.db[c+j] = T(float64(t.db[c+j]) + sums[j])
		}
	}
}
