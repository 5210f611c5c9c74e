package cpu

// Blocks of a tiled multiplication (Goto & van de Geijn 2008, §4). A block of a [blockM blockK] stays in the second-level cache while
// panels of b pass by; one tile of c stays in registers over blockK.
const (
	blockK = 384
	blockM = 256
	blockN = 3072
)

// kernels are the parts of a tiled multiplication that are written in assembly for one element type.
type kernels[T float] struct {
	name       string
	rows       int         // of a tile
	tiles      []tileOf[T] // widest first
	transposes []transposeOf[T]
	copyRows   func(dst, src *T, stride, rows, elements int) // elements is a multiple of unit
	unit       int
}

// tileOf is c [rows width] (+)= a b, a packed [k rows], b packed [k width]; only rows and cols of it are stored.
type tileOf[T float] struct {
	width int
	f     func(k int, a, b, c *T, ldc, rows, cols, add int)
}

// transposeOf is dst[p*width+j] = src[j*stride+p] for rows j and blocks*cols p.
type transposeOf[T float] struct {
	rows, cols int
	f          func(dst *T, width int, src *T, stride, blocks int)
}

// tiledTask is c [m n] = op(a) op(b) (+ c) by blocks. Elements are summed over k in an order that depends on k alone, so
// that no bit depends on how rows and columns are shared out.
type tiledTask[T float] struct {
	*kernels[T]
	c, a, b        []T
	m, n, k        int
	lda, ldb, ldc  int // elements from row to row as the operands lie in memory
	transA, transB bool
	add            bool
	byRows         bool // workers share out rows of c, else columns
	packs          []packed[T]
	none           T // what an operand of no depth points at
}

// packed is one worker's memory for packed operands.
type packed[T float] struct{ a, b []T }

func (d *core[T]) tiled(ks *kernels[T], c, a, b []T, m, n, k int, transA, transB, add bool) {
	t := &d.ops.tiled
	t.kernels, t.c, t.a, t.b, t.m, t.n, t.k = ks, c, a, b, m, n, k
	t.transA, t.transB, t.add = transA, transB, add
	t.lda, t.ldb, t.ldc = k, n, n
	if transA {
		t.lda = m
	}
	if transB {
		t.ldb = k
	}
	if len(t.packs) < d.opts.Threads {
		t.packs = make([]packed[T], d.opts.Threads)
	}
	t.byRows = m > n
	cells, unit := n, ks.tiles[0].width
	if t.byRows {
		cells, unit = m, ks.rows
	}
	d.team.split(cells, unit, m*n*(k/32+1), t)
}

func (t *tiledTask[T]) run(w, lo, hi int) {
	m0, m1, n0, n1 := 0, t.m, lo, hi
	if t.byRows {
		m0, m1, n0, n1 = lo, hi, 0, t.n
	}
	t.region(&t.packs[w], m0, m1, n0, n1)
}

// region computes rows m0 up to m1 and columns n0 up to n1.
func (t *tiledTask[T]) region(p *packed[T], m0, m1, n0, n1 int) {
	blocks := max(1, (t.k+blockK-1)/blockK)
	depth := (t.k + blocks - 1) / blocks
	for jc := n0; jc < n1; jc += blockN {
		nc := min(blockN, n1-jc)
		for pc := 0; pc < max(1, t.k); pc += max(1, depth) {
			kc := min(depth, t.k-pc)
			t.packB(p, jc, nc, pc, kc)
			for ic := m0; ic < m1; ic += blockM {
				mc := min(blockM, m1-ic)
				t.packA(p, ic, mc, pc, kc)
				t.block(p, ic, mc, jc, nc, kc, t.add || pc > 0)
			}
		}
	}
}

// tileFor is the narrowest tile that holds n columns, or the widest.
func (t *tiledTask[T]) tileFor(n int) tileOf[T] {
	best := t.tiles[0]
	for _, k := range t.tiles[1:] {
		if k.width >= n {
			best = k
		}
	}
	return best
}

// block multiplies a packed block of a with a packed block of b, tile by tile.
func (t *tiledTask[T]) block(p *packed[T], ic, mc, jc, nc, kc int, add bool) {
	flag := 0
	if add {
		flag = 1
	}
	at := 0
	for j := 0; j < nc; {
		tile := t.tileFor(nc - j)
		cols := min(tile.width, nc-j)
		b := &t.none
		if kc > 0 {
			b = &p.b[at]
		}
		for i := 0; i < mc; i += t.rows {
			a := &t.none
			if kc > 0 {
				a = &p.a[i*kc]
			}
			tile.f(kc, a, b, &t.c[(ic+i)*t.ldc+jc+j], t.ldc, min(t.rows, mc-i), cols, flag)
		}
		at += tile.width * kc
		j += cols
	}
}

// packA lays out rows ic.. of a as panels [kc rows].
func (t *tiledTask[T]) packA(p *packed[T], ic, mc, pc, kc int) {
	size := (mc + t.rows - 1) / t.rows * t.rows * kc
	if cap(p.a) < size {
		p.a = make([]T, size)
	}
	p.a = p.a[:size]
	for i := 0; i < mc && kc > 0; i += t.rows {
		n := min(t.rows, mc-i)
		if t.transA {
			t.rowsOf(p.a[i*kc:], t.rows, t.a[pc*t.lda+ic+i:], t.lda, n, kc)
		} else {
			t.transposed(p.a[i*kc:], t.rows, t.a[(ic+i)*t.lda+pc:], t.lda, n, kc)
		}
	}
}

// packB lays out columns jc.. of b as panels [kc width].
func (t *tiledTask[T]) packB(p *packed[T], jc, nc, pc, kc int) {
	size := (nc + t.tiles[0].width - 1) / t.tiles[0].width * t.tiles[0].width * kc
	if cap(p.b) < size {
		p.b = make([]T, size)
	}
	p.b = p.b[:size]
	at := 0
	for j := 0; j < nc && kc > 0; {
		tile := t.tileFor(nc - j)
		n := min(tile.width, nc-j)
		if t.transB {
			t.transposed(p.b[at:], tile.width, t.b[(jc+j)*t.ldb+pc:], t.ldb, n, kc)
		} else {
			t.rowsOf(p.b[at:], tile.width, t.b[pc*t.ldb+jc+j:], t.ldb, n, kc)
		}
		at += tile.width * kc
		j += n
	}
}

// rowsOf: dst[p*width+j] = src[p*stride+j] for j < n, and zero up to width.
func (t *tiledTask[T]) rowsOf(dst []T, width int, src []T, stride, n, k int) {
	if n == width && width%t.unit == 0 {
		t.copyRows(&dst[0], &src[0], stride, k, width)
		return
	}
	for p := range k {
		row := dst[p*width:][:width]
		copy(row, src[p*stride:][:n])
		clear(row[n:])
	}
}

// transposed: dst[p*width+j] = src[j*stride+p] for j < n, and zero up to width.
func (t *tiledTask[T]) transposed(dst []T, width int, src []T, stride, n, k int) {
	j := 0
	for j < n {
		done := false
		for _, tr := range t.transposes {
			if j+tr.rows > n || k < tr.cols {
				continue
			}
			blocks := k / tr.cols
			tr.f(&dst[j], width, &src[j*stride], stride, blocks)
			for r := j; r < j+tr.rows; r++ {
				for p := blocks * tr.cols; p < k; p++ {
					dst[p*width+r] = src[r*stride+p]
				}
			}
			j += tr.rows
			done = true
			break
		}
		if !done {
			for p := range k {
				dst[p*width+j] = src[j*stride+p]
			}
			j++
		}
	}
	for ; j < width; j++ {
		for p := range k {
			dst[p*width+j] = 0
		}
	}
}
