package cpu

import "triax/tensor"

// gemmSizes checks the shapes of a product and returns its sizes.
func gemmSizes(c, a, b *tensor.Tensor, transA, transB bool, beta float64) (m, n, k int) {
	m, k = rowsOf(a), colsOf(a)
	if transA {
		m, k = k, m
	}
	kb, n := rowsOf(b), colsOf(b)
	if transB {
		kb, n = n, kb
	}
	demand(k == kb && rowsOf(c) == m && colsOf(c) == n && (beta == 0 || beta == 1), "Gemm", c, a, b)
	return m, n, k
}

func (d *core[T]) Gemm(c, a, b *tensor.Tensor, transA, transB bool, beta float64) {
	m, n, k := gemmSizes(c, a, b, transA, transB, beta)
	d.multiplyWith(d.gemm, tensor.Slice[T](c), tensor.Slice[T](a), tensor.Slice[T](b), m, n, k, transA, transB, beta == 1)
}

// multiplyWith uses these kernels; nil is plain Go.
func (d *core[T]) multiplyWith(ks *kernels[T], c, a, b []T, m, n, k int, transA, transB, add bool) {
	if ks != nil && m > 0 && n > 0 {
		t := d.tiling(ks, m, n, k, transA, transB, add)
		t.c, t.a, t.b = c, a, b
		d.tiled(t)
		return
	}
	g := &d.ops.gemm
	g.c, g.a, g.b = c, a, b
	g.n, g.k, g.add = n, k, add
	if transA {
		g.a = d.transposed(&g.at, g.a, k, m)
	}
	if !transB {
		g.b = d.transposed(&g.bt, g.b, k, n)
	}
	d.team.split(m, 2, m*n*(k/8+1), g)
}

// gemmTask is c = a b^T (+ c): a [m k], b [n k]. Every element is summed in the order of k, so that
// no bit depends on how rows are cut.
type gemmTask[T float] struct {
	c, a, b []T
	n, k    int
	add     bool
	at, bt  []T // scratch for transposed inputs
}

func (g *gemmTask[T]) run(_, lo, hi int) {
	for i := lo; i < hi; i += 2 {
		for j := 0; j < g.n; j += 4 {
			if i+2 <= hi && j+4 <= g.n {
				g.block(i, j)
				continue
			}
			for r := i; r < min(i+2, hi); r++ {
				for c := j; c < min(j+4, g.n); c++ {
					g.one(r, c)
				}
			}
		}
	}
}

func (g *gemmTask[T]) one(i, j int) {
	a, b := g.a[i*g.k:][:g.k], g.b[j*g.k:][:g.k]
	var s T
	for p, x := range a {
		s += x * b[p]
	}
	g.put(i*g.n+j, s)
}

// block is 2 rows by 4 columns: 8 sums are what 16 vector registers can hold beside their inputs.
func (g *gemmTask[T]) block(i, j int) {
	k := g.k
	a0, a1 := g.a[i*k:][:k], g.a[(i+1)*k:][:k]
	b0, b1, b2, b3 := g.b[j*k:][:k], g.b[(j+1)*k:][:k], g.b[(j+2)*k:][:k], g.b[(j+3)*k:][:k]
	var s00, s01, s02, s03, s10, s11, s12, s13 T
	for p, x0 := range a0 {
		x1 := a1[p]
		y0, y1, y2, y3 := b0[p], b1[p], b2[p], b3[p]
		s00 += x0 * y0
		s01 += x0 * y1
		s02 += x0 * y2
		s03 += x0 * y3
		s10 += x1 * y0
		s11 += x1 * y1
		s12 += x1 * y2
		s13 += x1 * y3
	}
	o := i*g.n + j
	g.put(o, s00)
	g.put(o+1, s01)
	g.put(o+2, s02)
	g.put(o+3, s03)
	o += g.n
	g.put(o, s10)
	g.put(o+1, s11)
	g.put(o+2, s12)
	g.put(o+3, s13)
}

func (g *gemmTask[T]) put(o int, s T) {
	if g.add {
		s += g.c[o]
	}
	g.c[o] = s
}

// transposed is x [rows cols] as [cols rows], in scratch memory that is kept for the next call.
func (d *core[T]) transposed(scratch *[]T, x []T, rows, cols int) []T {
	if cap(*scratch) < len(x) {
		*scratch = make([]T, len(x))
	}
	y := (*scratch)[:len(x)]
	d.ops.transpose = transposeTask[T]{y, x, rows, cols}
	d.team.split(cols, 16, len(x), &d.ops.transpose)
	return y
}

type transposeTask[T float] struct {
	y, x       []T
	rows, cols int
}

func (t *transposeTask[T]) run(_, lo, hi int) {
	const tile = 32
	for j0 := lo; j0 < hi; j0 += tile {
		for i0 := 0; i0 < t.rows; i0 += tile {
			for j := j0; j < min(j0+tile, hi); j++ {
				for i := i0; i < min(i0+tile, t.rows); i++ {
					t.y[j*t.rows+i] = t.x[i*t.cols+j]
				}
			}
		}
	}
}
