package cpu

import "triax/tensor"

// blockKernels holds the kernels of the operation in flight, so that a call allocates nothing.
type blockKernels struct {
	mapped  mapBlock
	bias    biasBlock
	rowwise rowwiseBlock
	swiglu  swigluBlock
	rope    ropeBlock
	dropout dropoutBlock
	norm    normBlock
	normIn  normInputBlock
	loss    lossBlock
}

type mapBlock struct{ task mapTask[float32] }

func (b *mapBlock) block(_ int, x *[maxOperands][]float32, _, _ int) {
	t := b.task
	t.y, t.x, t.z = x[0], x[1], x[2]
	t.run(0, 0, len(t.y))
}

// simple is an operation element by element, of so rough a cost.
func (d *half) simple(op mapOp, s float32, n, cost int, operands ...operand) {
	d.kernels.mapped.task = mapTask[float32]{op: op, s: s, rows: d.rows}
	d.blocks(n, 256, n*cost, &d.kernels.mapped, operands...)
}

func (d *half) Add(y, x *tensor.Tensor) {
	if full(y, x) {
		d.core.Add(y, x)
		return
	}
	d.simple(mapAdd, 0, sameLen("Add", y, x), 1, rowsIO(y, 1), rowsIn(x, 1))
}

func (d *half) Scale(y *tensor.Tensor, s float64) {
	if full(y) {
		d.core.Scale(y, s)
		return
	}
	d.simple(mapScale, float32(s), y.Len(), 1, rowsIO(y, 1))
}

func (d *half) Gelu(y, x *tensor.Tensor) {
	d.simple(mapGelu, 0, sameLen("Gelu", y, x), 16, rowsOut(y, 1), rowsIn(x, 1))
}

func (d *half) GeluGrad(dx, x, dy *tensor.Tensor) {
	d.simple(mapGeluGrad, 0, sameLen("GeluGrad", dx, x, dy), 16, rowsOut(dx, 1), rowsIn(x, 1), rowsIn(dy, 1))
}

type biasBlock struct{ task addBiasTask[float32] }

func (b *biasBlock) block(_ int, x *[maxOperands][]float32, lo, hi int) {
	t := b.task
	t.y = x[0]
	t.run(0, 0, hi-lo)
}

func (d *half) AddBias(y, b *tensor.Tensor) {
	demand(colsOf(y) == b.Len(), "AddBias", y, b)
	d.kernels.bias.task = addBiasTask[float32]{nil, d.vector(0, b), d.rows}
	d.blocks(rowsOf(y), 1, y.Len(), &d.kernels.bias, rowsIO(y, colsOf(y)))
}

type rowwiseBlock struct{ task rowwiseTask[float32] }

func (b *rowwiseBlock) block(_ int, x *[maxOperands][]float32, lo, hi int) {
	t := b.task
	t.s, t.x, t.y = x[0], x[1], x[2]
	t.run(0, 0, hi-lo)
}

func (d *half) ScaleRows(y, x, s *tensor.Tensor) {
	rows, cols := rowsOf(x), colsOf(x)
	demand(y.Len() == x.Len() && s.Len() == rows, "ScaleRows", y, x, s)
	d.kernels.rowwise.task = rowwiseTask[float32]{cols: cols, rows: d.rows}
	d.blocks(rows, 1, x.Len(), &d.kernels.rowwise, rowsIn(s, 1), rowsIn(x, cols), rowsOut(y, cols))
}

func (d *half) DotRows(s, x, y *tensor.Tensor) {
	rows, cols := rowsOf(x), colsOf(x)
	demand(y.Len() == x.Len() && s.Len() == rows, "DotRows", s, x, y)
	d.kernels.rowwise.task = rowwiseTask[float32]{cols: cols, dot: true, rows: d.rows}
	d.blocks(rows, 1, x.Len(), &d.kernels.rowwise, rowsOut(s, 1), rowsIn(x, cols), rowsIn(y, cols))
}

type swigluBlock struct{ task swigluTask[float32] }

func (b *swigluBlock) block(_ int, x *[maxOperands][]float32, _, _ int) {
	t := b.task
	if t.dy != nil {
		t.gate, t.up, t.dgate, t.dup, t.dy = x[0], x[1], x[2], x[3], x[4]
	} else {
		t.gate, t.up, t.y = x[0], x[1], x[2]
	}
	t.run(0, 0, len(x[0]))
}

func (d *half) SwiGLU(y, gate, up *tensor.Tensor) {
	n := sameLen("SwiGLU", y, gate, up)
	d.kernels.swiglu.task = swigluTask[float32]{rows: d.rows}
	d.blocks(n, 256, 16*n, &d.kernels.swiglu, rowsIn(gate, 1), rowsIn(up, 1), rowsOut(y, 1))
}

func (d *half) SwiGLUGrad(dgate, dup, gate, up, dy *tensor.Tensor) {
	n := sameLen("SwiGLUGrad", dgate, dup, gate, up, dy)
	d.kernels.swiglu.task = swigluTask[float32]{rows: d.rows, dy: []float32{}}
	d.blocks(n, 256, 16*n, &d.kernels.swiglu, rowsIn(gate, 1), rowsIn(up, 1), rowsOut(dgate, 1), rowsOut(dup, 1), rowsIn(dy, 1))
}

type ropeBlock struct {
	task      *ropeTask[float32]
	positions []int32
}

func (b *ropeBlock) block(w int, x *[maxOperands][]float32, lo, hi int) {
	t := *b.task
	t.x, t.positions = x[0], b.positions[lo:hi]
	t.run(w, 0, hi-lo)
}

func (d *half) Rope(x, positions *tensor.Tensor, heads int, freq []float64, inverse bool) {
	r := d.turning(x, positions, heads, freq, inverse)
	d.kernels.rope = ropeBlock{r, r.positions}
	d.blocks(positions.Len(), 1, 4*x.Len(), &d.kernels.rope, rowsIO(x, colsOf(x)))
}

type dropoutBlock struct{ task dropoutTask[float32] }

func (b *dropoutBlock) block(_ int, x *[maxOperands][]float32, lo, hi int) {
	t := b.task
	t.y, t.x, t.index = x[0], x[1], t.index[lo:hi]
	t.run(0, 0, hi-lo)
}

func (d *half) Dropout(y, x, index *tensor.Tensor, seed uint64, stride, offset int, rate float64) {
	rows, cols := index.Len(), colsOf(x)
	demand(rowsOf(x) == rows && x.Len() == y.Len(), "Dropout", y, x, index)
	d.kernels.dropout.task = dropoutTask[float32]{
		index: index.I32(), cols: cols, seed: seed, stride: stride, offset: offset, rate: rate, scale: float32(1 / (1 - rate)), rows: d.rows,
	}
	d.blocks(rows, 1, 4*x.Len(), &d.kernels.dropout, rowsOut(y, cols), rowsIn(x, cols))
}
