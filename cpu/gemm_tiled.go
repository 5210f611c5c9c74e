package cpu

import "math"

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
	// copyA and copyB of rows that are bfloat16 already, sizes in bytes.
	halvesA, halvesB func(dst *float32, src *uint16, stride, pairs, pieces, width, panel int)
	// unit is what depths are multiples of, in pairs; more than 1 is filled up with zeros. byRows says that a is packed by its rows, and
	// not with k across them.
	unit   int
	byRows bool
}

// depth is what a depth of k takes in packed operands.
func (k *kernels[T]) depth(kc int) int {
	if k.pairs != nil {
		unit := max(1, k.pairs.unit)
		return (kc + 2*unit - 1) / (2 * unit) * unit
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
	half           halves  // operands that are bfloat16 in memory, in place of those
	vector         *rowOps // that widen and narrow them
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
	c           []T // sums of a part of c that is rounded when they are whole
	ahead       ahead[T]
}

// tiling is the task of a product, operands still to be set.
func (d *core[T]) tiling(ks *kernels[T], m, n, k int, transA, transB, add bool) *tiledTask[T] {
	t := &d.ops.tiled
	t.kernels, t.m, t.n, t.k = ks, m, n, k
	t.c, t.a, t.b, t.half = nil, nil, nil, halves{}
	t.transA, t.transB, t.add = transA, transB, add
	t.lda, t.ldb, t.ldc = k, n, n
	if transA {
		t.lda = m
	}
	if transB {
		t.ldb = k
	}
	return t
}

func (d *core[T]) tiled(t *tiledTask[T]) {
	if len(t.packs) < d.opts.Threads {
		t.packs = make([]packed[T], d.opts.Threads)
	}
	m, n, k, ks := t.m, t.n, t.k, t.kernels
	long, unit, short, panel := n, ks.tiles[0].width, m, ks.rows
	if t.byRows = m > n; t.byRows {
		long, unit, short, panel = short, panel, long, unit
	}
	short = (short + panel - 1) / panel * panel
	depth := t.depthOf(k)
	stretch := max(1, wholeSize/(short*t.depth(depth))) * depth
	if t.half.c != nil && stretch < k {
		d.widened(t)
		defer d.narrowed(t)
	}
	for t.k0 = 0; t.k0 < max(1, k); t.k0 = t.k1 {
		t.k1 = min(k, t.k0+stretch)
		t.short = short
		grow(&t.whole, short*t.depth(t.k1-t.k0))
		t.packing = true
		d.team.split(short, panel, len(t.whole), t)
		t.packing = false
		if !t.byRows {
			unit = panels(n, unit, d.opts.Threads)
		}
		d.team.split(long, unit, m*n*((t.k1-t.k0)/32+1), t)
		if t.k1 == k {
			break
		}
	}
}

// panels is how wide pieces of n columns should be, in full tiles: wide ones read rows of b in longer stretches, but threads should
// end together.
func panels(n, tile, threads int) int {
	const loss = 2 // per cent, for each tile less than a block
	most := blockN / tile
	best, least := 1, math.MaxInt
	for w := most; w > 0; w-- {
		pieces := (n + w*tile - 1) / (w * tile)
		if pieces < 2*threads {
			continue // too few to make up for a late thread
		}
		load := (pieces + threads - 1) / threads * w * (100 + loss*(most-w))
		if load < least {
			best, least = w, load
		}
	}
	return best * tile
}

// depthOf is the depth of a block: k in equal parts of at most blockK elements when packed.
func (k *kernels[T]) depthOf(n int) int {
	most, unit := blockK, 1
	if k.pairs != nil {
		most, unit = 2*blockK, 2*max(1, k.pairs.unit)
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
