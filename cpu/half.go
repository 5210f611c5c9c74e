package cpu

import "triax/tensor"

// half is the device whose parameters and activations are bfloat16. It computes in float32: operations on what is float32 (gradients, states,
// statistics of rows) are those of the device it is made from, and the others widen a block of rows at a time, into a few kilobytes that stay in
// the first-level cache, work on it as that device does, and round what they store. Only products take bfloat16 as it is, where the
// processor multiplies it in vectors; elsewhere they widen too, so that the results are the same but for the order of sums.
type half struct {
	*core[float32]
	blocked  blockTask
	kernels  blockKernels
	columns  columnTask
	products halfProducts
	heads    halfAttention
	vectors  [2][]float32 // widened weights and biases of rows
}

func newHalf(opts Options) *half {
	d := &half{core: newCore[float32](opts)}
	d.gemm = tilingHalves[float32](d.opts.ISA, !opts.NoTiles)
	d.blocked.workers = make([]blockWorker, d.opts.Threads)
	d.columns.workers = make([]columnWorker, d.opts.Threads)
	d.blocked.rows, d.columns.rows = d.rows, d.rows
	return d
}

// bits is the elements of a tensor in bfloat16.
func bits(t *tensor.Tensor) []uint16 { return tensor.Slice[uint16](t) }

// full says whether all tensors are float32: then the operation is that of the device of float32.
func full(ts ...*tensor.Tensor) bool {
	for _, t := range ts {
		if t.DType != tensor.F32 {
			return false
		}
	}
	return true
}

// vector is a tensor [F] widened, in room number i.
func (d *half) vector(i int, t *tensor.Tensor) []float32 {
	grow(&d.vectors[i], t.Len())
	d.rows.widen(d.vectors[i], bits(t))
	return d.vectors[i]
}

// maxOperands is the most tensors of rows that an operation has.
const maxOperands = 5

// operand is a tensor whose rows an operation walks.
type operand struct {
	half    []uint16
	full    []float32 // where half is nil
	cols    int
	in, out bool
}

func rowsIn(t *tensor.Tensor, cols int) operand  { return operandOf(t, cols, true, false) }
func rowsOut(t *tensor.Tensor, cols int) operand { return operandOf(t, cols, false, true) }
func rowsIO(t *tensor.Tensor, cols int) operand  { return operandOf(t, cols, true, true) }

func operandOf(t *tensor.Tensor, cols int, in, out bool) operand {
	o := operand{cols: cols, in: in, out: out}
	if t.DType == tensor.BF16 {
		o.half = bits(t)
	} else {
		o.full = t.F32()
	}
	return o
}

// blockKernel works on rows lo up to hi of the operands, given as float32, in worker w.
type blockKernel interface {
	block(w int, x *[maxOperands][]float32, lo, hi int)
}

// blockTask runs a kernel over rows, a block at a time.
type blockTask struct {
	rows     *rowOps
	operands [maxOperands]operand
	n        int // operands
	height   int // rows of a block
	kernel   blockKernel
	workers  []blockWorker
}

type blockWorker struct {
	x    [maxOperands][]float32
	room []float32
}

// blockFloats is the elements of a block of all operands together: half of the usual first-level cache.
const blockFloats = 1 << 12

// blocks shares out the rows of operands; unit and work as for split.
func (d *half) blocks(rows, unit, work int, kernel blockKernel, operands ...operand) {
	t := &d.blocked
	width := 0
	t.n = copy(t.operands[:], operands)
	for _, o := range operands {
		if o.half != nil {
			width += o.cols
		}
	}
	t.kernel, t.height = kernel, max(1, blockFloats/max(1, width))
	for w := range t.workers {
		grow(&t.workers[w].room, t.height*width)
	}
	d.team.split(rows, unit, work, t)
}

func (t *blockTask) run(w, lo, hi int) {
	p := &t.workers[w]
	for at := lo; at < hi; at += t.height {
		end := min(hi, at+t.height)
		room := p.room
		for i, o := range t.operands[:t.n] {
			if o.half == nil {
				p.x[i] = o.full[at*o.cols : end*o.cols]
				continue
			}
			n := (end - at) * o.cols
			p.x[i], room = room[:n], room[n:]
			if o.in {
				t.rows.widen(p.x[i], o.half[at*o.cols:end*o.cols])
			}
		}
		t.kernel.block(w, &p.x, at, end)
		for i, o := range t.operands[:t.n] {
			if o.half != nil && o.out {
				t.rows.narrow(o.half[at*o.cols:end*o.cols], p.x[i])
			}
		}
	}
}
