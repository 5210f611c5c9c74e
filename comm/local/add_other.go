//go:build !amd64

package local

func addF32(dst, a, b []float32) { add(dst, a, b) }
func addF64(dst, a, b []float64) { add(dst, a, b) }
