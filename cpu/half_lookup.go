package cpu

import "triax/tensor"

type lossBlock struct{ task lossTask[float32] }

func (b *lossBlock) block(_ int, x *[maxOperands][]float32, lo, hi int) {
	t := b.task
	t.logits, t.max = x[0], x[1]
	if t.pass != passMax {
		t.sum, t.targets = x[2], t.targets[lo:hi]
	}
	if t.pass == passSum {
		t.target = x[3]
	}
	t.run(0, 0, hi-lo)
}

func (d *half) RowMax(max, logits *tensor.Tensor, valid int) {
	rows, cols := rowsOf(logits), colsOf(logits)
	demand(max.Len() == rows && valid <= cols, "RowMax", max, logits)
	d.kernels.loss.task = lossTask[float32]{pass: passMax, cols: cols, valid: valid, rows: d.rows}
	d.blocks(rows, 1, logits.Len(), &d.kernels.loss, rowsIn(logits, cols), rowsOut(max, 1))
}

func (d *half) RowSum(sum, target, logits, max, targets *tensor.Tensor, lo, valid int) {
	rows, cols := rowsOf(logits), colsOf(logits)
	demand(sum.Len() == rows && target.Len() == rows && max.Len() == rows && targets.Len() == rows && valid <= cols,
		"RowSum", sum, target, logits, max, targets)
	d.kernels.loss.task = lossTask[float32]{pass: passSum, targets: targets.I32(), cols: cols, first: lo, valid: valid, rows: d.rows}
	d.blocks(rows, 1, 16*logits.Len(), &d.kernels.loss, rowsIn(logits, cols), rowsIn(max, 1), rowsOut(sum, 1), rowsOut(target, 1))
}

func (d *half) LossGrad(logits, max, sum, targets *tensor.Tensor, lo, valid int, scale float64) {
	rows, cols := rowsOf(logits), colsOf(logits)
	demand(sum.Len() == rows && max.Len() == rows && targets.Len() == rows && valid <= cols, "LossGrad", logits, max, sum, targets)
	d.kernels.loss.task = lossTask[float32]{pass: passGrad, targets: targets.I32(), cols: cols, first: lo, valid: valid, scale: scale, rows: d.rows}
	d.blocks(rows, 1, 16*logits.Len(), &d.kernels.loss, rowsIO(logits, cols), rowsIn(max, 1), rowsIn(sum, 1))
}

// lookupTask copies rows of a table of bfloat16, or adds rows into one of either type.
type lookupTask struct {
	y, table    []uint16
	full        []float32 // the table, where it is float32
	ids         []int32
	cols, first int
	grad        bool
	rows        *rowOps
	workers     []columnWorker
}

func (d *half) Embed(y, table, ids *tensor.Tensor, lo int) {
	demand(colsOf(y) == colsOf(table) && rowsOf(y) == ids.Len(), "Embed", y, table, ids)
	t := &d.products.lookup
	*t = lookupTask{y: bits(y), table: bits(table), ids: ids.I32(), cols: colsOf(y), first: lo}
	d.team.split(ids.Len(), 1, y.Len(), t)
}

// EmbedGrad cuts by columns: rows of the same id add up in the order of the tokens.
func (d *half) EmbedGrad(dtable, dy, ids *tensor.Tensor, lo int) {
	demand(colsOf(dy) == colsOf(dtable) && rowsOf(dy) == ids.Len(), "EmbedGrad", dtable, dy, ids)
	t := &d.products.lookup
	*t = lookupTask{y: bits(dy), ids: ids.I32(), cols: colsOf(dy), first: lo, grad: true, rows: d.core.rows, workers: d.columns.workers}
	if dtable.DType == tensor.F32 {
		t.full = dtable.F32()
	} else {
		t.table = bits(dtable)
	}
	d.team.split(t.cols, columnUnit, dy.Len(), t)
}

func (t *lookupTask) run(worker, lo, hi int) {
	if t.grad {
		t.add(&t.workers[worker], lo, hi)
		return
	}
	for i := lo; i < hi; i++ {
		y := t.y[i*t.cols:][:t.cols]
		if r := int(t.ids[i]) - t.first; r >= 0 && r < len(t.table)/t.cols {
			copy(y, t.table[r*t.cols:])
		} else {
			clear(y)
		}
	}
}

func (t *lookupTask) add(w *columnWorker, lo, hi int) {
	n := hi - lo
	grow(&w.dy, n)
	grow(&w.x, n)
	for i, id := range t.ids {
		r := int(id) - t.first
		if r < 0 || r >= max(len(t.table), len(t.full))/t.cols {
			continue
		}
		at := r*t.cols + lo
		t.rows.widen(w.dy, t.y[i*t.cols+lo:][:n])
		sum := mapTask[float32]{op: mapAdd, x: w.dy, rows: t.rows}
		if t.full != nil {
			sum.y = t.full[at:][:n]
			sum.run(0, 0, n)
			continue
		}
		t.rows.widen(w.x, t.table[at:][:n])
		sum.y = w.x
		sum.run(0, 0, n)
		t.rows.narrow(t.table[at:][:n], w.x)
	}
}
