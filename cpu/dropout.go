package cpu

import "triax/tensor"

func (d *core[T]) Dropout(y, x, index *tensor.Tensor, seed uint64, stride, offset int, rate float64) {
	rows := index.Len()
	demand(rowsOf(x) == rows && x.Len() == y.Len(), "Dropout", y, x, index)
	d.ops.dropout = dropoutTask[T]{
		y: tensor.Slice[T](y), x: tensor.Slice[T](x), index: index.I32(), cols: colsOf(x),
		seed: seed, stride: stride, offset: offset, rate: rate, scale: T(1 / (1 - rate)), rows: d.rows,
	}
	d.team.split(rows, 1, 4*x.Len(), &d.ops.dropout)
}

type dropoutTask[T float] struct {
	y, x           []T
	index          []int32
	cols           int
	seed           uint64
	stride, offset int
	rate           float64
	scale          T
	rows           *rowOps
}

func (t *dropoutTask[T]) run(_, lo, hi int) {
	mask := tensor.NewMask(t.seed, t.rate)
	for r := lo; r < hi; r++ {
		at := uint64(int(t.index[r])*t.stride + t.offset)
		y, x := t.y[r*t.cols:][:t.cols], t.x[r*t.cols:][:t.cols]
		if k := t.rows; k != nil && k.dropout != nil {
			state, _, limit := mask.Stream(at)
			k.dropout(first(y), first(x), t.cols, state, limit, float32(t.scale))
			continue
		}
		for f := range y {
			if mask.Keeps(at + uint64(f)) {
				y[f] = x[f] * t.scale
			} else {
				y[f] = 0
			}
		}
	}
}
