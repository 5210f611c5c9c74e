package cuda

import (
	"fmt"

	"triax/cuda/driver"
	"triax/tensor"
)

// Gemm is the matrix library's product.
func (d *Device) Gemm(c, a, b *tensor.Tensor, transA, transB bool, beta float64) {
	m, n := rowsOf(c), colsOf(c)
	am, k := rowsOf(a), colsOf(a)
	if transA {
		am, k = k, am
	}
	kb, bn := rowsOf(b), colsOf(b)
	if transB {
		kb, bn = bn, kb
	}
	p := driver.Product{BF16: a.DType == tensor.BF16, Wide: a.DType != c.DType, M: m, N: n, K: k, TransA: transA, TransB: transB}
	demand(am == m && bn == n && kb == k && a.DType == b.DType && (a.DType == tensor.F32 || a.DType == tensor.BF16) &&
		(c.DType == a.DType || c.DType == tensor.F32), fmt.Sprintf("Gemm %v %v", transA, transB), c, a, b)
	if m == 0 || n == 0 {
		return
	}
	if k == 0 {
		if beta == 0 {
			d.Zero(c)
		}
		return
	}
	pc, pa, pb := d.on("Gemm", c), d.on("Gemm", a), d.on("Gemm", b)
	p.Align = [3]uint32{alignment(pa), alignment(pb), alignment(pc)}
	d.owner.give(func(*driver.Context) error {
		if err := d.products.Run(p, pc, pa, pb, float32(beta)); err != nil {
			return fmt.Errorf("%+v: %w", p, err)
		}
		return nil
	})
}

// alignment is the largest power of two, up to 256, that divides an address.
func alignment(p driver.Pointer) uint32 { return uint32(min(256, p&-p)) }
