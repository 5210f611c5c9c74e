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
	pairs      *pairOf[T]
}

// pairOf is what kernels have besides that take packed operands in pairs: in the place of one element are those of k and k+1,
// rounded to bfloat16. Then copyA and copyB make one row out of two.
type pairOf[T float] struct {
	narrow func(dst, src *T, n int) // rounds a row: dst gets n/2 pairs
	pair   func(x, y T) T
}

// depth is what a depth of k takes in packed operands.
func (k *kernels[T]) depth(kc int) int {
	if k.pairs != nil {
		return (kc + 1) / 2
	}
	return kc
}

// tileOf is c [rows width] (+)= a b, a packed [k rows], b packed [k width]; only rows and cols of it are stored. Each tileRound of
// k, it asks for the two cache lines at next, then step elements on.
type tileOf[T float] struct {
	width int
	f     func(k int, a, b, c *T, ldc, rows, cols, add int, next *T, step int)
}

const tileRound = 4

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
	short          int  // length of the operand packed whole, in full panels
	packing        bool // whole is being made
	whole          []T  // op(a) or op(b) over k0 up to k1, packed; nil when threads pack both
	packs          []packed[T]
	none           T // what an operand of no depth points at
}

// packed is one worker's memory for packed operands.
type packed[T float] struct {
	a, b, strip []T
	ahead       ahead[T]
}

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
	depth := t.depthOf(k)
	for t.k0 = 0; t.k0 < max(1, k); t.k0 = t.k1 {
		t.k1 = min(k, t.k0+max(1, wholeSize/(short*t.depth(depth)))*depth)
		t.short = short
		grow(&t.whole, short*t.depth(t.k1-t.k0))
		t.packing = true
		d.team.split(short, panel, len(t.whole), t)
		t.packing = false
		if w := blockN / ks.tiles[0].width * unit; !t.byRows && long >= 2*w*d.opts.Threads {
			unit = w // narrower pieces read rows of b in fragments
		}
		d.team.split(long, unit, m*n*((t.k1-t.k0)/32+1), t)
		if t.k1 == k {
			break
		}
	}
}

// depthOf is the depth of a block: k in equal parts of at most blockK elements when packed.
func (k *kernels[T]) depthOf(n int) int {
	most, unit := blockK, 1
	if k.pairs != nil {
		most, unit = 2*blockK, 2
	}
	blocks := max(1, (n+most-1)/most)
	return max(1, (n+blocks*unit-1)/(blocks*unit)) * unit
}

func (t *tiledTask[T]) run(w, lo, hi int) {
	p := &t.packs[w]
	if t.packing {
		t.packWhole(p, lo, hi)
		return
	}
	after := hi
	if w != 0 {
		after = lo - (hi - lo) // see team: the others come from the back
	}
	if t.byRows {
		t.region(p, lo, hi, 0, t.n, after)
	} else {
		t.region(p, 0, t.m, lo, hi, after)
	}
}

// packWhole packs rows of op(a), or columns of op(b), from lo up to hi, a multiple of panels: block after block of k, in
// each panel after panel.
func (t *tiledTask[T]) packWhole(p *packed[T], lo, hi int) {
	depth := t.depthOf(t.k)
	for pc := t.k0; pc < t.k1; pc += depth {
		kc := min(depth, t.k1-pc)
		to := t.wholeAt(pc, kc)[lo*t.depth(kc):]
		if t.byRows {
			t.packB(p, to, lo, min(hi, t.n)-lo, pc, kc)
		} else {
			t.packA(p, to, lo, min(hi, t.m)-lo, pc, kc)
		}
	}
}

// wholeAt is the part of whole for the block of k from pc.
func (t *tiledTask[T]) wholeAt(pc, kc int) []T {
	return t.whole[t.depth(pc-t.k0)*t.short:][:t.short*t.depth(kc)]
}

// region computes rows m0 up to m1 and columns n0 up to n1: part after part of c small enough to stay near over all of k. The next region
// of this thread probably starts at after.
func (t *tiledTask[T]) region(p *packed[T], m0, m1, n0, n1, after int) {
	depth := t.depthOf(t.k)
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
					a := t.blockA(p, ic, mc, pc, kc)
					if t.byRows {
						t.foresee(p, ic, blockM, m1, pc, depth, after)
					} else if ic == ir {
						t.foresee(p, jc, blockN, n1, pc, depth, after)
					}
					t.block(p, a, b, ic, mc, jc, nc, t.depth(kc), t.add || pc > 0)
				}
			}
		}
	}
}

// foresee finds the block to pack after the one at (at, pc): further along k, or along the thread's own side up to end, or in
// its next region.
func (t *tiledTask[T]) foresee(p *packed[T], at, size, end, pc, depth, after int) {
	switch {
	case pc+depth < t.k1:
		t.expect(p, at, min(size, end-at), pc+depth, min(depth, t.k1-pc-depth))
	case at+size < end:
		t.expect(p, at+size, min(size, end-at-size), t.k0, min(depth, t.k1-t.k0))
	default:
		t.expect(p, after, min(size, end-at), t.k0, min(depth, t.k1-t.k0))
	}
}

// blockA is a packed block of op(a): out of whole, or packed now.
func (t *tiledTask[T]) blockA(p *packed[T], ic, mc, pc, kc int) []T {
	if t.whole != nil && !t.byRows {
		return t.wholeAt(pc, kc)[ic*t.depth(kc):]
	}
	grow(&p.a, (mc+t.rows-1)/t.rows*t.rows*t.depth(kc))
	t.packA(p, p.a, ic, mc, pc, kc)
	return p.a
}

// blockB is the same of op(b).
func (t *tiledTask[T]) blockB(p *packed[T], jc, nc, pc, kc int) []T {
	if t.whole != nil && t.byRows {
		return t.wholeAt(pc, kc)[jc*t.depth(kc):]
	}
	width := t.tiles[0].width
	grow(&p.b, (nc+width-1)/width*width*t.depth(kc))
	t.packB(p, p.b, jc, nc, pc, kc)
	return p.b
}

// tileFor is the narrowest tile that holds n columns, or the widest. Two of the second width are better than the widest and a narrow
// one, but where threads pack b together their cuts may fall between the two.
func (t *tiledTask[T]) tileFor(n int) tileOf[T] {
	best := t.tiles[0]
	if n > best.width && n <= 2*t.tiles[1].width && (t.whole == nil || !t.byRows) {
		return t.tiles[1]
	}
	for _, k := range t.tiles[1:] {
		if k.width >= n {
			best = k
		}
	}
	return best
}

// block multiplies a packed block of a with a packed block of b, tile by tile. kc is their packed depth.
func (t *tiledTask[T]) block(p *packed[T], a, b []T, ic, mc, jc, nc, kc int, add bool) {
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
			next, step := p.ahead.of(kc/tileRound, &t.none)
			tile.f(kc, pa, pb, &t.c[(ic+i)*t.ldc+jc+j], t.ldc, min(t.rows, mc-i), cols, flag, next, step)
		}
		at += tile.width * kc
		j += cols
	}
}
