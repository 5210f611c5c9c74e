package local

import "golang.org/x/sys/cpu"

// sumAVX2F32 puts the sum of srcs rows, at least two, in each of dsts rows of n elements, a multiple of 32. A source may be a destination.
//
//go:noescape
func sumAVX2F32(dst, src **float32, dsts, srcs, n int)

// sumAVX2F64 is the same; n is a multiple of 16.
//
//go:noescape
func sumAVX2F64(dst, src **float64, dsts, srcs, n int)

// sumAVX2BF16 is the same for bfloat16, added in float32 and rounded once; n is a multiple of 32.
//
//go:noescape
func sumAVX2BF16(dst, src **uint16, dsts, srcs, n int)

func sumF32(dst, src []*float32, n int) int {
	if n &^= 31; n > 0 && cpu.X86.HasAVX2 {
		sumAVX2F32(&dst[0], &src[0], len(dst), len(src), n)
		return n
	}
	return 0
}

func sumF64(dst, src []*float64, n int) int {
	if n &^= 15; n > 0 && cpu.X86.HasAVX2 {
		sumAVX2F64(&dst[0], &src[0], len(dst), len(src), n)
		return n
	}
	return 0
}

func sumBF16(dst, src []*uint16, n int) int {
	if n &^= 31; n > 0 && cpu.X86.HasAVX2 {
		sumAVX2BF16(&dst[0], &src[0], len(dst), len(src), n)
		return n
	}
	return 0
}
