package cpu

import "triax/tensor"

func (d *core[T]) Embed(y, table, ids *tensor.Tensor, lo int) {
	demand(colsOf(y) == colsOf(table) && rowsOf(y) == ids.Len(), "Embed", y, table, ids)
	d.ops.embed = embedTask[T]{rows: tensor.Slice[T](y), table: tensor.Slice[T](table), ids: ids.I32(), cols: colsOf(y), first: lo, kernels: d.rows}
	d.team.split(ids.Len(), 1, y.Len(), &d.ops.embed)
}

// EmbedGrad cuts by columns: rows of the same id add up in the order of the tokens.
func (d *core[T]) EmbedGrad(dtable, dy, ids *tensor.Tensor, lo int) {
	demand(colsOf(dy) == colsOf(dtable) && rowsOf(dy) == ids.Len(), "EmbedGrad", dtable, dy, ids)
	d.ops.embed = embedTask[T]{
		rows: tensor.Slice[T](dy), table: tensor.Slice[T](dtable), ids: ids.I32(), cols: colsOf(dy), first: lo, grad: true, kernels: d.rows,
	}
	d.team.split(colsOf(dy), columnUnit, dy.Len(), &d.ops.embed)
}

type embedTask[T float] struct {
	rows, table []T
	ids         []int32
	cols, first int
	grad        bool
	kernels     *rowOps
}

// row is the table's part for token t, nil when the id is held elsewhere.
func (e *embedTask[T]) row(t int) []T {
	r := int(e.ids[t]) - e.first
	if r < 0 || r >= len(e.table)/e.cols {
		return nil
	}
	return e.table[r*e.cols:][:e.cols]
}

func (e *embedTask[T]) run(_, lo, hi int) {
	if e.grad {
		e.add(lo, hi)
		return
	}
	for t := lo; t < hi; t++ {
		y := e.rows[t*e.cols:][:e.cols]
		if row := e.row(t); row != nil {
			copy(y, row)
		} else {
			clear(y)
		}
	}
}

func (e *embedTask[T]) add(lo, hi int) {
	for t := range e.ids {
		row := e.row(t)
		if row == nil {
			continue
		}
		dy := e.rows[t*e.cols:][:e.cols]
		if e.kernels != nil {
			e.kernels.add(first(row[lo:]), first(dy[lo:]), hi-lo)
			continue
		}
		for j := lo; j < hi; j++ {
			row[j] += dy[j]
		}
	}
}
