package cpu

import (
	"math"
	"slices"
	"unsafe"

	"golang.org/x/sys/cpu"
)

// HasBF16 says whether this processor multiplies bfloat16 in vectors, for Options.BF16.
func HasBF16() bool { return cpu.X86.HasAVX512BF16 && slices.Contains(Supported(), AVX512) }

// tilingPairs is the multiplication kernels that round to bfloat16, nil for float64 and where there are none.
func tilingPairs[T float](isa ISA) *kernels[T] {
	var zero T
	if _, ok := any(zero).(float32); !ok || isa != AVX512 || !HasBF16() {
		return nil
	}
	k := &kernels[float32]{
		name: "bf16", rows: 8, lanes: 16,
		tiles:      []tileOf[float32]{{48, tile8x48BF16}, {32, tile8x32BF16}, {16, tile8x16BF16}},
		transposes: []transposeOf[float32]{{8, 8, transpose8x8F32}, {4, 8, transpose4x8F32}},
		copyA:      pairCopies(packPairs8), copyB: pairCopies(packPairs16),
		pairs: &pairOf[float32]{narrow: narrowRow, pair: pairBits, halvesA: packHalves8, halvesB: packHalves16},
	}
	return any(k).(*kernels[T])
}

// pairCopies is a copy whose sizes are in bytes for float32.
func pairCopies(f func(dst, src *float32, stride, pairs, pieces, width, panel int)) copyOf[float32] {
	return func(dst, src *float32, stride, pairs, pieces, width, panel int) {
		f(dst, src, 4*stride, pairs, pieces, 4*width, 4*panel)
	}
}

// narrowRow rounds n numbers to bfloat16, with a zero after an odd number of them.
func narrowRow(dst, src *float32, n int) {
	to := unsafe.Slice((*uint16)(unsafe.Pointer(dst)), (n+1)/2*2)
	rowToBF16AVX512(&to[0], src, n)
	clear(to[n:])
}

// pairBits has x rounded to bfloat16 in the lower half of its bits and y in the upper half.
func pairBits(x, y float32) float32 {
	return math.Float32frombits(uint32(bf16(float64(x))) | uint32(bf16(float64(y)))<<16)
}

// peakPairs is the measuring loop of PeakBF16.
func peakPairs(rounds int) { peakBF16(rounds) }

const peakPairsFlop = 4 * 24 * 16 * 4
