package cpu

import "unsafe"

// rowOps are the kernels along rows of float32, in assembly for one instruction set. All work on n elements; doc
// comments of their functions (rowExpAVX512, ...) say what they compute.
//
// Errors, in units of the last place, by TestAccuracy: exp 1.24 from -87.3 to 88.3 (0 below, e^88.4 above), 0.6 near zero; silu 3.2;
// gelu 11 from -3 up, where its tail still matters. gelu takes no tanh: 1 + tanh u is 2 / (1 + e^-2u), which does not cancel.
type rowOps struct {
	exp        func(dst, src *float32, n int, slope, shift, scale float32) float32
	expSum     func(src *float32, n int, shift float32) float32
	max        func(src *float32, n int) float32
	add        func(dst, src *float32, n int)
	scale      func(dst *float32, n int, s float32)
	dot        func(x, y *float32, n int) float32
	gelu       func(dst, src *float32, n int)
	geluGrad   func(dst, src, dy *float32, n int)
	swiglu     func(dst, gate, up *float32, n int)
	swigluGrad func(dgate, dup, gate, up, dy *float32, n int)
	sum        func(src *float32, n int) float32
	squares    func(src *float32, n int, mean float32) float32
	norm       func(dst, src, w, b *float32, n int, mean, rstd float32)
	rms        func(dst, src, w *float32, n int, rstd float32)
	normSums   func(dy, w, src *float32, n int, mean float32) (sum, dot float32)
	normGrad   func(dst, dy, w, src *float32, n int, mean, rstd, sum, dot float32)
	normWeight func(dw, dy, src *float32, n int, mean, rstd float32)
	scores     func(dst, p, dp *float32, n int, delta, scale float32)
	scaleTo    func(dst, src *float32, n int, s float32)
	rope       func(x, y, cos, sin *float32, n int, sign float32)
	blind      func(dst *float32, numbers *int32, n int, own int32)
	sgd        func(w, g *float32, n int, rate, scale, decay float32)
	momentum   func(w, g, m *float32, n int, rate, momentum, scale, decay float32)
	sumSquares func(src *float32, groups int) float64
	group      int // elements of a group of sumSquares
	adamw      func(w, g, m, v *float32, n int, scale, beta1, rest1, beta2, rest2, step, eps, keep float32)

	// Those below are nil without AVX-512.

	dropout  func(dst, src *float32, n int, state, limit uint64, scale float32)
	fromBF16 func(dst *float32, src *uint16, n int)
	toBF16   func(dst *uint16, src *float32, n int)
}

// first is the address of x's first element as a float32, which it must be.
func first[T float](x []T) *float32 { return (*float32)(unsafe.Pointer(unsafe.SliceData(x))) }
