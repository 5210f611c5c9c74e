package cuda

import (
	"unsafe"

	"triax/tensor"
)

// Add is y += x.
func (d *Device) Add(y, x *tensor.Tensor) {
	n := sameLen("Add", y, x)
	d.flat("add", y.DType, n, y, x, n)
}

// Scale is y *= s.
func (d *Device) Scale(y *tensor.Tensor, s float64) {
	d.flat("scale", y.DType, y.Len(), y, s, y.Len())
}

// AddBias is y += b on each row.
func (d *Device) AddBias(y, b *tensor.Tensor) {
	demand(colsOf(y) == b.Len(), "AddBias", y, b)
	d.flat("add_bias", y.DType, y.Len(), y, b, y.Len(), b.Len())
}

// ScaleRows is y = x times s row by row.
func (d *Device) ScaleRows(y, x, s *tensor.Tensor) {
	n := sameLen("ScaleRows", y, x)
	demand(s.Len() == rowsOf(x), "ScaleRows", y, x, s)
	d.flat("scale_rows", y.DType, n, y, x, s, n, colsOf(x))
}

// DotRows is s = x . y row by row.
func (d *Device) DotRows(s, x, y *tensor.Tensor) {
	sameLen("DotRows", x, y)
	demand(s.Len() == rowsOf(x), "DotRows", s, x, y)
	d.warps("dot_rows", x.DType, rowsOf(x), s, x, y, rowsOf(x), colsOf(x))
}

// Gelu is y = gelu(x).
func (d *Device) Gelu(y, x *tensor.Tensor) {
	n := sameLen("Gelu", y, x)
	d.flat("gelu", x.DType, n, y, x, n)
}

// GeluGrad is dx = dy gelu'(x).
func (d *Device) GeluGrad(dx, x, dy *tensor.Tensor) {
	n := sameLen("GeluGrad", dx, x, dy)
	d.flat("gelu_grad", x.DType, n, dx, x, dy, n)
}

// SwiGLU is y = silu(gate) up.
func (d *Device) SwiGLU(y, gate, up *tensor.Tensor) {
	n := sameLen("SwiGLU", y, gate, up)
	d.flat("swiglu", y.DType, n, y, gate, up, n)
}

// SwiGLUGrad is its gradient.
func (d *Device) SwiGLUGrad(dgate, dup, gate, up, dy *tensor.Tensor) {
	n := sameLen("SwiGLUGrad", dgate, dup, gate, up, dy)
	d.flat("swiglu_grad", dy.DType, n, dgate, dup, gate, up, dy, n)
}

// Rope turns pairs by positions. The frequencies are sent once.
func (d *Device) Rope(x, positions *tensor.Tensor, heads int, freq []float64, inverse bool) {
	rows := positions.Len()
	demand(heads > 0 && rowsOf(x) == rows && colsOf(x) == 2*heads*len(freq), "Rope", x, positions)
	key := unsafe.SliceData(freq)
	there := d.freq[key]
	if there == nil && len(freq) > 0 {
		s := d.allocate(tensor.F64, len(freq))
		there = tensor.Of(tensor.F64, s, len(freq)) // outside of the ledger, like code: a few bytes that belong to no tensor of the run
		d.Upload(there, freq)
		d.freq[key] = there
	}
	sign := 1.0
	if inverse {
		sign = -1
	}
	d.flat("rope", x.DType, rows*len(freq), x, positions, there, rows, heads, len(freq), sign)
}

// Dropout drops by the counter-based stream.
func (d *Device) Dropout(y, x, index *tensor.Tensor, seed uint64, stride, offset int, rate float64) {
	n := sameLen("Dropout", y, x)
	demand(rowsOf(x) == index.Len(), "Dropout", y, x, index)
	start, _, limit := tensor.NewMask(seed, rate).Stream(0)
	d.flat("dropout", x.DType, n, y, x, index, start, limit, stride, offset, 1/(1-rate), n, colsOf(x))
}
