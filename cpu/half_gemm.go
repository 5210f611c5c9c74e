package cpu

import "triax/tensor"

// halfProducts is memory of the operations that are not cut by rows.
type halfProducts struct {
	lookup  lookupTask
	wide    wideTask
	c, a, b []float32 // widened operands, where the processor does not multiply bfloat16
}

// Gemm takes operands of bfloat16 into a result of either type.
func (d *half) Gemm(c, a, b *tensor.Tensor, transA, transB bool, beta float64) {
	m, n, k := gemmSizes(c, a, b, transA, transB, beta)
	if full(c, a, b) {
		d.core.Gemm(c, a, b, transA, transB, beta)
		return
	}
	add := beta == 1
	if d.gemm == nil || m == 0 || n == 0 {
		d.widely(c, a, b, m, n, k, transA, transB, add)
		return
	}
	t := d.tiling(d.gemm, m, n, k, transA, transB, add)
	t.half, t.vector = halves{a: bits(a), b: bits(b)}, d.rows
	if c.DType == tensor.F32 {
		t.c = c.F32()
	} else {
		t.half.c = bits(c)
	}
	d.tiled(t)
}

// widely multiplies in float32: products of two bfloat16 are exact in it.
func (d *half) widely(c, a, b *tensor.Tensor, m, n, k int, transA, transB, add bool) {
	p := &d.products
	af, bf, cf := d.wideCopy(&p.a, a, true), d.wideCopy(&p.b, b, true), []float32(nil)
	if c.DType == tensor.F32 {
		cf = c.F32()
	} else {
		cf = d.wideCopy(&p.c, c, add)
	}
	d.multiplyWith(d.tile, cf, af, bf, m, n, k, transA, transB, add)
	if c.DType != tensor.F32 {
		p.wide = wideTask{rows: d.rows, full: cf, half: bits(c)}
		d.team.split(len(cf), 256, len(cf), &p.wide)
	}
}

// wideCopy is a tensor in float32, in memory that is kept for the next call.
func (d *half) wideCopy(room *[]float32, t *tensor.Tensor, load bool) []float32 {
	grow(room, t.Len())
	if load {
		d.products.wide = wideTask{d.rows, *room, bits(t), true}
		d.team.split(t.Len(), 256, t.Len(), &d.products.wide)
	}
	return *room
}
