package devicetest

import (
	"fmt"
	"math"
	"math/cmplx"
)

// rope turns pairs as complex numbers: an independent way to write it.
func rope(x []float64, positions []int32, heads int, freq []float64, sign float64) []float64 {
	y := make([]float64, len(x))
	dim := len(x) / len(positions) / heads
	for t, p := range positions {
		for h := range heads {
			for i := range dim / 2 {
				o := (t*heads+h)*dim + i
				turn := cmplx.Rect(1, sign*float64(p)*freq[i])
				z := complex(x[o], x[o+dim/2]) * turn
				y[o], y[o+dim/2] = real(z), imag(z)
			}
		}
	}
	return y
}

func ropes(b *bench) {
	for _, s := range [][3]int{{1, 1, 2}, {3, 2, 4}, {7, 3, 6}, {17, 4, 64}, {65, 1, 10}, {130, 5, 32}} {
		rows, heads, dim := s[0], s[1], s[2]
		positions := make([]int32, rows)
		for i := range positions {
			positions[i] = int32(b.rng.IntN(2000))
		}
		for _, base := range []float64{10000, 500} {
			freq := make([]float64, dim/2)
			for i := range freq {
				freq[i] = math.Pow(base, -2*float64(i)/float64(dim))
			}
			x, xv := b.random(1, rows, heads*dim)
			ids := b.ints(positions)
			b.dev.Rope(x, ids, heads, freq, false)
			b.want(fmt.Sprintf("rope %v base %v", s, base), x, rope(xv, positions, heads, freq, 1))
			b.dev.Rope(x, ids, heads, freq, true)
			b.want(fmt.Sprintf("rope %v there and back", s), x, xv)
			b.dev.Rope(x, ids, heads, freq, true)
			b.near("inverse rope", b.read(x), rope(xv, positions, heads, freq, -1), 3*b.tol)
		}
		b.free()
	}
}
