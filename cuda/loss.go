package cuda

import "triax/tensor"

// rowBlocks launches a kernel whose blocks take a row each.
func (d *Device) rowBlocks(name string, float tensor.DType, rows int, args ...any) {
	d.launch(name, float, shape{grid: dim(rows), block: dim(256)}, args...)
}

// RowMax is each row's largest logit.
func (d *Device) RowMax(max, logits *tensor.Tensor, valid int) {
	rows, cols := rowsOf(logits), colsOf(logits)
	demand(max.Len() == rows && valid <= cols, "RowMax", max, logits)
	d.rowBlocks("row_max", logits.DType, rows, max, logits, cols, valid)
}

// RowSum is each row's sum of exponentials, and its target's logit.
func (d *Device) RowSum(sum, target, logits, max, targets *tensor.Tensor, lo, valid int) {
	rows, cols := rowsOf(logits), colsOf(logits)
	demand(sameLen("RowSum", sum, target, max, targets) == rows && valid <= cols, "RowSum", sum, logits)
	d.rowBlocks("row_sum", logits.DType, rows, sum, target, logits, max, targets, cols, lo, valid)
}

// LossGrad turns logits into their gradient.
func (d *Device) LossGrad(logits, max, sum, targets *tensor.Tensor, lo, valid int, scale float64) {
	rows, cols := rowsOf(logits), colsOf(logits)
	demand(sameLen("LossGrad", max, sum, targets) == rows && valid <= cols, "LossGrad", logits, max)
	d.rowBlocks("loss_grad", logits.DType, rows, logits, max, sum, targets, cols, lo, valid, scale)
}

// LossOf adds in float64, in two stages.
func (d *Device) LossOf(sum, target, max, targets *tensor.Tensor) float64 {
	rows := sameLen("LossOf", sum, target, max, targets)
	return d.total(parts(rows, 1024), func(part *tensor.Tensor) {
		d.rowBlocks("loss_part", tensor.F32, part.Len(), part, sum, target, max, targets, rows)
	})
}

// total adds up n parts that fill has made.
func (d *Device) total(n int, fill func(part *tensor.Tensor)) float64 {
	if n == 0 {
		return 0
	}
	part, sum := d.scratch(tensor.F64, n), d.scratch(tensor.F64, 1)
	defer part.Release()
	defer sum.Release()
	fill(part)
	d.rowBlocks("total", tensor.F32, 1, sum, part, n)
	var out [1]float64
	d.Download(out[:], sum)
	return out[0]
}
