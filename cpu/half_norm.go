package cpu

import "triax/tensor"

type normBlock struct{ task normTask[float32] }

func (b *normBlock) block(_ int, x *[maxOperands][]float32, lo, hi int) {
	t := b.task
	t.y, t.x, t.rstd = x[0], x[1], x[2]
	if t.b != nil {
		t.mean = x[3]
	}
	t.run(0, 0, hi-lo)
}

func (d *half) LayerNorm(y, mean, rstd, x, w, b *tensor.Tensor, eps float64) {
	rows, cols := rowsOf(x), colsOf(x)
	demand(y.Len() == x.Len() && mean.Len() == rows && rstd.Len() == rows && w.Len() == cols && b.Len() == cols,
		"LayerNorm", y, mean, rstd, x, w, b)
	d.kernels.norm.task = normTask[float32]{w: d.vector(0, w), b: d.vector(1, b), eps: eps, rows: d.rows}
	d.blocks(rows, 1, 4*x.Len(), &d.kernels.norm, rowsOut(y, cols), rowsIn(x, cols), rowsOut(rstd, 1), rowsOut(mean, 1))
}

func (d *half) RMSNorm(y, rstd, x, w *tensor.Tensor, eps float64) {
	rows, cols := rowsOf(x), colsOf(x)
	demand(y.Len() == x.Len() && rstd.Len() == rows && w.Len() == cols, "RMSNorm", y, rstd, x, w)
	d.kernels.norm.task = normTask[float32]{w: d.vector(0, w), eps: eps, rows: d.rows}
	d.blocks(rows, 1, 4*x.Len(), &d.kernels.norm, rowsOut(y, cols), rowsIn(x, cols), rowsOut(rstd, 1))
}

type normInputBlock struct {
	task   normInputTask[float32]
	centre bool
}

func (b *normInputBlock) block(_ int, x *[maxOperands][]float32, lo, hi int) {
	t := b.task
	t.dx, t.dy, t.x, t.rstd = x[0], x[1], x[2], x[3]
	if b.centre {
		t.mean = x[4]
	}
	t.run(0, 0, hi-lo)
}

func (d *half) LayerNormInput(dx, dy, x, w, mean, rstd *tensor.Tensor) {
	rows, cols := rowsOf(x), colsOf(x)
	demand(dx.Len() == x.Len() && dy.Len() == x.Len() && w.Len() == cols && mean.Len() == rows && rstd.Len() == rows,
		"LayerNormInput", dx, dy, x, w, mean, rstd)
	d.kernels.normIn = normInputBlock{normInputTask[float32]{w: d.vector(0, w), rows: d.rows}, true}
	d.blocks(rows, 1, 4*x.Len(), &d.kernels.normIn, rowsOut(dx, cols), rowsIn(dy, cols), rowsIn(x, cols), rowsIn(rstd, 1), rowsIn(mean, 1))
}

func (d *half) RMSNormInput(dx, dy, x, w, rstd *tensor.Tensor) {
	rows, cols := rowsOf(x), colsOf(x)
	demand(dx.Len() == x.Len() && dy.Len() == x.Len() && w.Len() == cols && rstd.Len() == rows,
		"RMSNormInput", dx, dy, x, w, rstd)
	d.kernels.normIn = normInputBlock{normInputTask[float32]{w: d.vector(0, w), rows: d.rows}, false}
	d.blocks(rows, 1, 4*x.Len(), &d.kernels.normIn, rowsOut(dx, cols), rowsIn(dy, cols), rowsIn(x, cols), rowsIn(rstd, 1))
}

// The sums over rows take a row's share of the columns at a time.

func (d *half) LayerNormWeight(dw, db, dy, x, mean, rstd *tensor.Tensor) {
	rows, cols := rowsOf(x), colsOf(x)
	demand(dw.Len() == cols && db.Len() == cols && dy.Len() == x.Len() && mean.Len() == rows && rstd.Len() == rows,
		"LayerNormWeight", dw, db, dy, x, mean, rstd)
	d.overRows(columnTask{dw: dw.F32(), db: db.F32(), dy: bits(dy), x: bits(x), mean: mean.F32(), rstd: rstd.F32()})
}

func (d *half) RMSNormWeight(dw, dy, x, rstd *tensor.Tensor) {
	rows, cols := rowsOf(x), colsOf(x)
	demand(dw.Len() == cols && dy.Len() == x.Len() && rstd.Len() == rows, "RMSNormWeight", dw, dy, x, rstd)
	d.overRows(columnTask{dw: dw.F32(), dy: bits(dy), x: bits(x), rstd: rstd.F32()})
}

func (d *half) BiasGrad(db, dy *tensor.Tensor) {
	demand(colsOf(dy) == db.Len(), "BiasGrad", db, dy)
	d.overRows(columnTask{db: db.F32(), dy: bits(dy)})
}

// columnTask adds what rows of dy say into dw and db, cut by columns: rows in order. Of a strip of columns a few rows are widened at a time.
type columnTask struct {
	dw, db     []float32 // nil where not wanted
	dy, x      []uint16
	mean, rstd []float32
	cols       int
	rows       *rowOps
	workers    []columnWorker
}

type columnWorker struct{ dy, x []float32 }

func (d *half) overRows(t columnTask) {
	t.cols = max(len(t.dw), len(t.db))
	if t.cols == 0 {
		return
	}
	t.rows, t.workers = d.columns.rows, d.columns.workers
	d.columns = t
	d.team.split(t.cols, columnUnit, 2*len(t.dy), &d.columns)
}

func (t *columnTask) run(worker, lo, hi int) {
	w := &t.workers[worker]
	n := hi - lo
	grow(&w.dy, n)
	grow(&w.x, n)
	norm := normWeightTask[float32]{dy: w.dy, x: w.x, rows: t.rows}
	bias := biasGradTask[float32]{dy: w.dy, rows: t.rows}
	if t.db != nil {
		norm.db, bias.db = t.db[lo:hi], t.db[lo:hi]
	}
	if t.dw != nil {
		norm.dw = t.dw[lo:hi]
	}
	for r := range len(t.dy) / t.cols {
		t.rows.widen(w.dy, t.dy[r*t.cols+lo:][:n])
		if t.dw == nil {
			bias.run(0, 0, n)
			continue
		}
		t.rows.widen(w.x, t.x[r*t.cols+lo:][:n])
		norm.rstd = t.rstd[r : r+1]
		if t.mean != nil {
			norm.mean = t.mean[r : r+1]
		}
		norm.run(0, 0, n)
	}
}
