package local

import (
	"math"

	"triax/comm"
	"triax/tensor"
)

// reduceBF16 is reduce for bfloat16: it adds in float32 and rounds once, to the nearest even.
func (m *member) reduceBF16() {
	calls := m.group.calls
	own := &calls[m.place]
	if m.scratch.f32.acc == nil {
		m.scratch.f32.acc = make([]float32, block)
	}
	if m.scratch.wide == nil {
		m.scratch.wide = make([]float32, block)
	}
	combine := addF32
	if own.op == comm.Max {
		combine = maximum[float32]
	}
	lo, hi := m.slice()
	base := 0
	if own.kind == comm.KindReduceScatter {
		base = lo
	}
	if own.op == comm.Sum && len(calls) > 1 {
		lo = whole(m, &m.scratch.bf16, sumBF16, lo, hi, base)
	}
	for at := lo; at < hi; at += block {
		end := min(hi, at+block)
		acc, x := m.scratch.f32.acc[:end-at], m.scratch.wide[:end-at]
		widen(acc, tensor.Slice[uint16](calls[0].src)[at:end])
		for i := 1; i < len(calls); i++ {
			widen(x, tensor.Slice[uint16](calls[i].src)[at:end])
			combine(acc, acc, x)
		}
		if own.kind == comm.KindReduceScatter {
			narrow(tensor.Slice[uint16](own.dst)[at-base:end-base], acc)
			continue
		}
		for i := range calls {
			narrow(tensor.Slice[uint16](calls[i].dst)[at:end], acc)
		}
	}
}

func widen(dst []float32, src []uint16) {
	for i, b := range src {
		dst[i] = math.Float32frombits(uint32(b) << 16)
	}
}

func narrow(dst []uint16, src []float32) {
	for i, f := range src {
		b := math.Float32bits(f)
		if f != f {
			dst[i] = uint16(b>>16) | 0x40 // stays NaN whatever bits are cut off
			continue
		}
		dst[i] = uint16((b + 0x7fff + b>>16&1) >> 16)
	}
}
