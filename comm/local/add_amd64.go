package local

import "golang.org/x/sys/cpu"

// addAVX2F32 is dst = a + b over n elements, a multiple of 32.
//
//go:noescape
func addAVX2F32(dst, a, b *float32, n int)

// addAVX2F64 is dst = a + b over n elements, a multiple of 16.
//
//go:noescape
func addAVX2F64(dst, a, b *float64, n int)

// addF32 is dst = a + b. Vector and scalar instructions round alike, so the bits do not depend on where an element stands.
func addF32(dst, a, b []float32) {
	n := len(dst) &^ 31
	if !cpu.X86.HasAVX2 {
		n = 0
	}
	if a, b = a[:len(dst)], b[:len(dst)]; n > 0 {
		addAVX2F32(&dst[0], &a[0], &b[0], n)
	}
	add(dst[n:], a[n:], b[n:])
}

// addF64 is dst = a + b.
func addF64(dst, a, b []float64) {
	n := len(dst) &^ 15
	if !cpu.X86.HasAVX2 {
		n = 0
	}
	if a, b = a[:len(dst)], b[:len(dst)]; n > 0 {
		addAVX2F64(&dst[0], &a[0], &b[0], n)
	}
	add(dst[n:], a[n:], b[n:])
}
