package local

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestSumBF16: the kernel for many rows gives the bits of plain Go, for numbers of every size, infinities and NaN, into all destinations.
func TestSumBF16(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for rows := 2; rows <= 4; rows++ {
		const n = 1 << 12
		x, src := make([][]uint16, rows), make([]*uint16, rows)
		acc, wide := make([]float32, n), make([]float32, n)
		for r := range x {
			x[r] = make([]uint16, n)
			for i := range x[r] {
				x[r][i] = uint16(rng.Uint32())
				if i%2 == 0 { // near one another, so that sums end in ties
					x[r][i] = uint16(math.Float32bits(1+float32(rng.IntN(512))/256) >> 16)
				}
			}
			src[r] = &x[r][0]
			if widen(wide, x[r]); r == 0 {
				copy(acc, wide)
			} else {
				add(acc, acc, wide)
			}
		}
		want, got := make([]uint16, n), make([]uint16, n)
		narrow(want, acc)
		done := sumBF16([]*uint16{&got[0], &x[1][0]}, src, n-5)
		if done != 0 && done != n-32 {
			t.Fatalf("summed %d of %d", done, n-5)
		}
		for i := range done {
			if got[i] != want[i] || x[1][i] != want[i] {
				t.Fatalf("%d rows: element %d is %#x and %#x, want %#x", rows, i, got[i], x[1][i], want[i])
			}
		}
		for i := done; i < n; i++ {
			if got[i] != 0 {
				t.Fatalf("element %d was written", i)
			}
		}
	}
}
