package devicetest

import (
	"fmt"
	"math"
)

// gemms: all transposes, both betas, sizes around every block edge, none.
func gemms(b *bench) {
	sizes := []int{1, 3, 7, 17, 65}
	var shapes [][3]int
	for _, m := range sizes {
		for _, n := range sizes {
			for _, k := range sizes {
				shapes = append(shapes, [3]int{m, n, k})
			}
		}
	}
	shapes = append(shapes, [3]int{0, 3, 4}, [3]int{3, 0, 4}, [3]int{3, 4, 0}, [3]int{8, 48, 384}, [3]int{9, 49, 385},
		[3]int{16, 32, 33}, [3]int{64, 64, 64}, [3]int{130, 97, 771}, [3]int{5, 1000, 40}, [3]int{513, 50, 30})
	for range 10 {
		shapes = append(shapes, [3]int{1 + b.rng.IntN(100), 1 + b.rng.IntN(100), 1 + b.rng.IntN(900)})
	}
	for i, s := range shapes {
		for form := range 8 {
			if i%2 == form%2 || i >= 120 { // half the forms of each small shape
				b.gemm(s[0], s[1], s[2], form&1 != 0, form&2 != 0, float64(form>>2))
			}
		}
		b.free()
	}
}

func (b *bench) gemm(m, n, k int, transA, transB bool, beta float64) {
	b.Helper()
	a, av := b.random(1, pick(transA, k, m), pick(transA, m, k))
	x, xv := b.random(1, pick(transB, n, k), pick(transB, k, n))
	blank, random := b.blank, b.random
	if b.rng.IntN(2) == 0 { // c may be of the type of sums
		blank, random = b.blankSum, b.randomSum
	}
	c := blank(m, n)
	cv := make([]float64, m*n)
	if beta != 0 {
		c, cv = random(1, m, n)
	}
	b.dev.Gemm(c, a, x, transA, transB, beta)
	// Measured against the size of a sum of so many terms that does not cancel: where it does, its rounding does not.
	b.close(fmt.Sprintf("gemm %d %d %d, %v %v, beta %v", m, n, k, transA, transB, beta), b.read(c),
		gemm(cv, av, xv, m, n, k, transA, transB), b.tol, math.Sqrt(float64(k)+beta))
}

func pick(cond bool, yes, no int) int {
	if cond {
		return yes
	}
	return no
}

// gemm is c + op(a) op(b).
func gemm(c, a, b []float64, m, n, k int, transA, transB bool) []float64 {
	out := append([]float64(nil), c...)
	for i := range m {
		for p := range k {
			x := a[pick(transA, p*m+i, i*k+p)]
			for j := range n {
				out[i*n+j] += x * b[pick(transB, j*k+p, p*n+j)]
			}
		}
	}
	return out
}
