package cpu

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
			to := part[T]{t.c, t.ldc, 0, 0, t.add}
			if t.half.c != nil {
				to = t.openPart(p, ir, min(rows, m1-ir), jc, nc)
			}
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
					t.block(p, a, b, to, ic, mc, jc, nc, t.depth(kc), to.add || pc > 0)
				}
			}
			if t.half.c != nil {
				t.closePart(to, min(rows, m1-ir), nc)
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

// part is the rows of c that a block's products go to; c[0] is the element (row, col) of the whole. add says that it holds something to add to.
type part[T float] struct {
	c            []T
	ld, row, col int
	add          bool
}

// block multiplies a packed block of a with a packed block of b, tile by tile. kc is their packed depth.
func (t *tiledTask[T]) block(p *packed[T], a, b []T, to part[T], ic, mc, jc, nc, kc int, add bool) {
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
			tile.f(kc, pa, pb, &to.c[(ic+i-to.row)*to.ld+jc+j-to.col], to.ld, min(t.rows, mc-i), cols, flag, next, step)
		}
		at += tile.width * kc
		j += cols
	}
}
