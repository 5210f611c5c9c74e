package cuda

import (
	"triax/cuda/driver"
	"triax/tensor"
)

// rowsLike demands [T F] for all of xs and [T] for all stats, [F] for weights, and gives T and F.
func rowsLike(op string, xs, stats, weights []*tensor.Tensor) (rows, cols int) {
	rows, cols = rowsOf(xs[0]), colsOf(xs[0])
	for _, x := range xs {
		demand(x.Len() == rows*cols, op, xs...)
	}
	for _, s := range stats {
		demand(s.Len() == rows, op, append(stats, xs...)...)
	}
	for _, w := range weights {
		demand(w.Len() == cols, op, append(weights, xs...)...)
	}
	return rows, cols
}

type list = []*tensor.Tensor

// LayerNorm normalises rows.
func (d *Device) LayerNorm(y, mean, rstd, x, w, b *tensor.Tensor, eps float64) {
	rows, cols := rowsLike("LayerNorm", list{x, y}, list{mean, rstd}, list{w, b})
	d.warps("layer_norm", x.DType, rows, y, mean, rstd, x, w, b, rows, cols, eps)
}

// LayerNormInput is the gradient of x.
func (d *Device) LayerNormInput(dx, dy, x, w, mean, rstd *tensor.Tensor) {
	rows, cols := rowsLike("LayerNormInput", list{x, dx, dy}, list{mean, rstd}, list{w})
	d.warps("norm_input", x.DType, rows, dx, dy, x, w, mean, rstd, rows, cols)
}

// LayerNormWeight adds to the gradients of w and b.
func (d *Device) LayerNormWeight(dw, db, dy, x, mean, rstd *tensor.Tensor) {
	rowsLike("LayerNormWeight", list{x, dy}, list{mean, rstd}, list{dw, db})
	d.normWeight(dw, db, dy, x, mean, rstd)
}

// RMSNorm divides rows by their root mean square.
func (d *Device) RMSNorm(y, rstd, x, w *tensor.Tensor, eps float64) {
	rows, cols := rowsLike("RMSNorm", list{x, y}, list{rstd}, list{w})
	d.warps("rms_norm", x.DType, rows, y, rstd, x, w, rows, cols, eps)
}

// RMSNormInput is the gradient of x.
func (d *Device) RMSNormInput(dx, dy, x, w, rstd *tensor.Tensor) {
	rows, cols := rowsLike("RMSNormInput", list{x, dx, dy}, list{rstd}, list{w})
	d.warps("norm_input", x.DType, rows, dx, dy, x, w, (*tensor.Tensor)(nil), rstd, rows, cols)
}

// RMSNormWeight adds to the gradient of w.
func (d *Device) RMSNormWeight(dw, dy, x, rstd *tensor.Tensor) {
	rowsLike("RMSNormWeight", list{x, dy}, list{rstd}, list{dw})
	d.normWeight(dw, nil, dy, x, nil, rstd)
}

// columns is a launch over stretches of rows: how many there are, and of how many rows each. Both follow from the shape alone.
func columns(rows, cols int) (s shape, chunks, chunk int) {
	chunk = max(64, parts(rows, 128))
	chunks = parts(rows, chunk)
	return shape{grid: driver.Dim{X: uint32(parts(cols, 32)), Y: uint32(chunks), Z: 1}, block: driver.Dim{X: 32, Y: 8, Z: 1}}, chunks, chunk
}

// scratch is memory of one operation. It may be released as soon as the work has been given: what uses it next comes later.
func (d *Device) scratch(dtype tensor.DType, n ...int) *tensor.Tensor {
	return d.heap.New(tensor.Workspace, dtype, n...)
}

// BiasGrad adds the sums of columns to db.
func (d *Device) BiasGrad(db, dy *tensor.Tensor) {
	rows, cols := rowsLike("BiasGrad", list{dy}, nil, list{db})
	s, chunks, chunk := columns(rows, cols)
	part := d.scratch(tensor.F32, chunks, cols)
	defer part.Release()
	d.launch("column_part", dy.DType, s, part, dy, rows, cols, chunk)
	d.flat("column_finish", dy.DType, cols, db, part, cols, chunks)
}

func (d *Device) normWeight(dw, db, dy, x, mean, rstd *tensor.Tensor) {
	rows, cols := rowsOf(x), colsOf(x)
	s, chunks, chunk := columns(rows, cols)
	weight := d.scratch(tensor.F32, chunks, cols)
	defer weight.Release()
	var bias *tensor.Tensor
	if db != nil {
		bias = d.scratch(tensor.F32, chunks, cols)
		defer bias.Release()
	}
	d.launch("norm_weight_part", x.DType, s, weight, bias, dy, x, mean, rstd, rows, cols, chunk)
	d.flat("column_finish", x.DType, cols, dw, weight, cols, chunks)
	if db != nil {
		d.flat("column_finish", x.DType, cols, db, bias, cols, chunks)
	}
}
