package cpu

// Blocks of a tiled multiplication (Goto & van de Geijn 2008, §4). A block of a [blockM blockK] stays in the second-level cache while
// panels of b pass by; one tile of c stays in registers over blockK.
const (
	blockK = 384
	blockM = 256
	blockN = 192

	// wholeSize is the most elements of the operand that is packed for all threads at once, some of the third-level cache:
	// beyond it k is walked in stretches.
	wholeSize = 1 << 20
)

// kernels are the parts of a tiled multiplication that are written in assembly for one element type.
type kernels[T float] struct {
	name       string
	rows       int         // of a tile
	tiles      []tileOf[T] // widest first
	transposes []transposeOf[T]
	copyA      copyOf[T]
	copyB      copyOf[T]
	lanes      int // elements of a vector, and of a piece of copyB; those of copyA are of rows elements
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

// copyOf cuts rows into pieces: piece i of row p goes to dst[p*width+i*panel].
type copyOf[T float] func(dst, src *T, stride, rows, pieces, width, panel int)

// tiledTask is c [m n] = op(a) op(b) (+ c) by blocks. Elements are summed over k in an order that depends on k alone, so
// that no bit depends on how rows and columns are shared out.
//
// The longer of m and n is shared out over the team. The operand along the other one is needed by all: it is packed
// once, by all together, into whole; each thread packs its own part of the other operand.
type tiledTask[T float] struct {
	*kernels[T]
	c, a, b        []T
	m, n, k        int
	lda, ldb, ldc  int // elements from row to row as the operands lie in memory
	transA, transB bool
	add            bool
	byRows         bool // threads share out rows of c, and b is packed whole; else columns, and a is
	k0, k1         int  // the stretch of k at hand
	packing        bool // whole is being made
	whole          []T  // op(a) or op(b) over k0 up to k1, packed; nil when threads pack both
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
	long, unit, short, panel := n, ks.tiles[0].width, m, ks.rows
	if t.byRows = m > n; t.byRows {
		long, unit, short, panel = short, panel, long, unit
	}
	short = (short + panel - 1) / panel * panel
	depth := depthOf(k)
	for t.k0 = 0; t.k0 < max(1, k); t.k0 = t.k1 {
		t.k1 = min(k, t.k0+max(1, wholeSize/(short*depth))*depth)
		grow(&t.whole, short*(t.k1-t.k0))
		t.packing = true
		d.team.split(short, panel, len(t.whole), t)
		t.packing = false
		d.team.split(long, unit, m*n*((t.k1-t.k0)/32+1), t)
		if t.k1 == k {
			break
		}
	}
}

// depthOf is the depth of a block: k in equal parts of at most blockK.
func depthOf(k int) int {
	blocks := max(1, (k+blockK-1)/blockK)
	return max(1, (k+blocks-1)/blocks)
}

func (t *tiledTask[T]) run(w, lo, hi int) {
	switch {
	case t.packing:
		t.packWhole(lo, hi)
	case t.byRows:
		t.region(&t.packs[w], lo, hi, 0, t.n)
	default:
		t.region(&t.packs[w], 0, t.m, lo, hi)
	}
}

// packWhole packs rows of op(a), or columns of op(b), from lo up to hi, a multiple of panels: block after block of k, in
// each panel after panel.
func (t *tiledTask[T]) packWhole(lo, hi int) {
	depth := depthOf(t.k)
	for pc := t.k0; pc < t.k1; pc += depth {
		kc := min(depth, t.k1-pc)
		to := t.wholeAt(pc, kc)[lo*kc:]
		if t.byRows {
			t.packB(to, lo, min(hi, t.n)-lo, pc, kc)
		} else {
			t.packA(to, lo, min(hi, t.m)-lo, pc, kc)
		}
	}
}

// wholeAt is the part of whole for the block of k from pc.
func (t *tiledTask[T]) wholeAt(pc, kc int) []T {
	short := len(t.whole) / max(1, t.k1-t.k0)
	return t.whole[(pc-t.k0)*short:][:short*kc]
}

// region computes rows m0 up to m1 and columns n0 up to n1: part after part of c small enough to stay near over all of k.
func (t *tiledTask[T]) region(p *packed[T], m0, m1, n0, n1 int) {
	depth := depthOf(t.k)
	rows, cols := m1-m0, blockN
	if t.byRows {
		rows, cols = blockM, n1-n0
	}
	for ir := m0; ir < m1; ir += rows {
		for jc := n0; jc < n1; jc += cols {
			nc := min(cols, n1-jc)
			for pc := t.k0; pc < max(1, t.k1); pc += depth {
				kc := min(depth, t.k1-pc)
				b := t.blockB(p, jc, nc, pc, kc)
				for ic := ir; ic < min(ir+rows, m1); ic += blockM {
					mc := min(blockM, m1-ic)
					t.block(t.blockA(p, ic, mc, pc, kc), b, ic, mc, jc, nc, kc, t.add || pc > 0)
				}
			}
		}
	}
}

// blockA is a packed block of op(a): out of whole, or packed now.
func (t *tiledTask[T]) blockA(p *packed[T], ic, mc, pc, kc int) []T {
	if t.whole != nil && !t.byRows {
		return t.wholeAt(pc, kc)[ic*kc:]
	}
	grow(&p.a, (mc+t.rows-1)/t.rows*t.rows*kc)
	t.packA(p.a, ic, mc, pc, kc)
	return p.a
}

// blockB is the same of op(b).
func (t *tiledTask[T]) blockB(p *packed[T], jc, nc, pc, kc int) []T {
	if t.whole != nil && t.byRows {
		return t.wholeAt(pc, kc)[jc*kc:]
	}
	width := t.tiles[0].width
	grow(&p.b, (nc+width-1)/width*width*kc)
	t.packB(p.b, jc, nc, pc, kc)
	return p.b
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
func (t *tiledTask[T]) block(a, b []T, ic, mc, jc, nc, kc int, add bool) {
	flag := 0
	if add {
		flag = 1
	}
	pa, pb := &t.none, &t.none
	at := 0
	for j := 0; j < nc; {
		tile := t.tileFor(nc - j)
		cols := min(tile.width, nc-j)
		if kc > 0 {
			pb = &b[at]
		}
		for i := 0; i < mc; i += t.rows {
			if kc > 0 {
				pa = &a[i*kc]
			}
			tile.f(kc, pa, pb, &t.c[(ic+i)*t.ldc+jc+j], t.ldc, min(t.rows, mc-i), cols, flag)
		}
		at += tile.width * kc
		j += cols
	}
}

// packA lays out rows ic.. of op(a) as panels [kc rows].
func (t *tiledTask[T]) packA(to []T, ic, mc, pc, kc int) {
	const group = 8 // panels written at a time: they may all fall into one set of the first-level cache
	for i := 0; i < mc && kc > 0; {
		n, panels := min(t.rows, mc-i), min(group, (mc-i)/t.rows)
		switch {
		case !t.transA:
			t.transposed(to[i*kc:], t.rows, t.a[(ic+i)*t.lda+pc:], t.lda, n, kc)
		case panels > 0:
			t.copyA(&to[i*kc], &t.a[pc*t.lda+ic+i], t.lda, kc, panels, t.rows, t.rows*kc)
			n = panels * t.rows
		default:
			paddedRows(to[i*kc:], t.rows, t.a[pc*t.lda+ic+i:], t.lda, n, kc)
		}
		i += n
	}
}

// packB lays out columns jc.. of op(b) as panels [kc width].
func (t *tiledTask[T]) packB(to []T, jc, nc, pc, kc int) {
	at := 0
	for j := 0; j < nc && kc > 0; {
		tile := t.tileFor(nc - j)
		n := min(tile.width, nc-j)
		switch {
		case t.transB:
			t.transposed(to[at:], tile.width, t.b[(jc+j)*t.ldb+pc:], t.ldb, n, kc)
		case n == tile.width:
			t.copyB(&to[at], &t.b[pc*t.ldb+jc+j], t.ldb, kc, n/t.lanes, n, t.lanes)
		default:
			paddedRows(to[at:], tile.width, t.b[pc*t.ldb+jc+j:], t.ldb, n, kc)
		}
		at += tile.width * kc
		j += n
	}
}

// paddedRows: dst[p*width+j] = src[p*stride+j] for j < n, and zero up to width.
func paddedRows[T float](dst []T, width int, src []T, stride, n, k int) {
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
