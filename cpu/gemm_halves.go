package cpu

import "unsafe"

// halves are operands of a product that lie in memory as bfloat16; nil where they are of the kernels' own type. In packed operands two of them,
// of k and k+1, take the place of one float32.
type halves struct{ c, a, b []uint16 }

// of is a or b.
func (h *halves) of(a bool) []uint16 {
	if a {
		return h.a
	}
	return h.b
}

// words sees pairs of bfloat16 as elements of 32 bits. The processors that have such kernels read from any address.
func words[T float](x []uint16) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(x))), len(x)/2)
}

// packHalves is packA or packB of an operand in bfloat16: n of its rows (of a) or columns (of b) from at on, k from pc on. across says that
// k runs across its rows in memory, not along them.
func (t *tiledTask[T]) packHalves(p *packed[T], to []T, x []uint16, at, n, pc, kc, ld int, across, isA bool) {
	if isA && t.pairs.byRows {
		t.packByRows(p, to, x, at, n, pc, kc, ld, across)
		return
	}
	depth := t.depth(kc)
	f, piece := t.pairs.halvesB, t.lanes
	if isA {
		f, piece = t.pairs.halvesA, t.rows
	}
	for j, done := 0, 0; j < n && kc > 0; {
		width := t.rows
		if !isA {
			width = t.tileFor(n - j).width
		}
		cols := min(width, n-j)
		dst := to[done:]
		switch {
		case !across:
			t.turnedHalves(p, dst, width, x[(at+j)*ld+pc:], ld, cols, kc)
		case cols == width:
			from := x[pc*ld+at+j:]
			panels := 1
			if isA { // written some at a time, see packA
				panels = min(8, (n-j)/width)
				cols = panels * width
			}
			t.halfPieces(f, dst, from, ld, kc, panels, width, piece, depth)
			width *= panels
		default:
			t.paddedHalves(dst, width, x[pc*ld+at+j:], ld, cols, kc)
		}
		if pairs := (kc + 1) / 2; pairs < depth {
			clear(dst[pairs*width : depth*width])
		}
		done += width * depth
		j += cols
	}
}

// halfPieces packs full panels from rows that k runs across. A panel of b is pieces side by side, one of a is one piece.
func (t *tiledTask[T]) halfPieces(f func(dst *float32, src *uint16, stride, pairs, pieces, width, panel int), dst []T, src []uint16, ld, k, panels, width, piece, depth int) {
	step, pieces := piece, width/piece // from piece to piece
	if panels > 1 {
		step, pieces = width*depth, panels
	}
	if k > 1 {
		f(first(dst), &src[0], 2*ld, k/2, pieces, 4*width, 4*step)
	}
	if k%2 == 1 {
		row := src[(k-1)*ld:]
		for j := range panels * width {
			pair(&dst[j/width*width*depth+k/2*width+j%width], row[j], 0)
		}
	}
}

// pair sets 32 bits to two numbers.
func pair[T float](dst *T, lower, upper uint16) {
	*(*uint32)(unsafe.Pointer(dst)) = uint32(lower) | uint32(upper)<<16
}

// paddedHalves is a narrow last panel, k across rows.
func (t *tiledTask[T]) paddedHalves(dst []T, width int, src []uint16, ld, n, k int) {
	for p := range (k + 1) / 2 {
		row := dst[p*width:][:width]
		clear(row[n:])
		for j := range n {
			var next uint16
			if 2*p+1 < k {
				next = src[(2*p+1)*ld+j]
			}
			pair(&row[j], src[2*p*ld+j], next)
		}
	}
}

// turnedHalves is a panel of rows that k runs along: they are rows of pairs as they lie. Odd ones are copied first.
func (t *tiledTask[T]) turnedHalves(p *packed[T], dst []T, width int, src []uint16, ld, n, k int) {
	if k%2 == 0 && ld%2 == 0 {
		t.transposed(dst, width, words[T](src), ld/2, n, k/2)
		return
	}
	const strip = 8
	depth := (k + 1) / 2
	grow(&p.strip, strip*depth)
	room := unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(p.strip))), 2*len(p.strip))
	for j := 0; j < n; j += strip {
		rows := min(strip, n-j)
		for r := range rows {
			line := room[2*r*depth:][:2*depth]
			clear(line[copy(line, src[(j+r)*ld:][:k]):])
		}
		t.transpose(dst[j:], width, p.strip, depth, rows, depth)
	}
	zeroColumns(dst, width, n, depth)
}

// packByRows is packHalves of an a whose rows stay rows, filled up with zeros.
func (t *tiledTask[T]) packByRows(p *packed[T], to []T, x []uint16, at, n, pc, kc, ld int, across bool) {
	const strip = 16
	depth, pairs := t.depth(kc), (kc+1)/2
	if !across {
		for r := range n {
			line := unsafe.Slice((*uint16)(unsafe.Pointer(&to[r*depth])), 2*depth)
			clear(line[copy(line, x[(at+r)*ld+pc:][:kc]):])
		}
		return
	}
	for j := 0; j < n && kc > 0; j += strip {
		rows := min(strip, n-j)
		grow(&p.strip, strip*pairs)
		from := x[pc*ld+at+j:]
		if rows == strip {
			t.halfPieces(t.pairs.halvesB, p.strip, from, ld, kc, 1, strip, t.lanes, pairs)
		} else {
			t.paddedHalves(p.strip, strip, from, ld, rows, kc)
		}
		t.transpose(to[j*depth:], depth, p.strip, strip, pairs, rows)
		for r := range rows {
			clear(to[(j+r)*depth+pairs : (j+r+1)*depth])
		}
	}
}

// roundByRows is packByRows of an a in float32.
func (t *tiledTask[T]) roundByRows(p *packed[T], to []T, at, n, pc, kc int) {
	const strip = 16
	depth, pairs := t.depth(kc), (kc+1)/2
	for j := 0; j < n && kc > 0; j += strip {
		rows := min(strip, n-j)
		if t.transA {
			grow(&p.strip, strip*pairs)
			from := t.a[pc*t.lda+at+j:]
			if rows == strip {
				t.pieces(t.copyB, p.strip, from, t.lda, kc, strip, strip, strip, strip)
			} else {
				t.paddedRows(p.strip, strip, from, t.lda, rows, kc)
			}
			t.transpose(to[j*depth:], depth, p.strip, strip, pairs, rows)
		}
		for r := range rows {
			line := to[(j+r)*depth:][:depth]
			if !t.transA {
				t.pairs.narrow(&line[0], &t.a[(at+j+r)*t.lda+pc], kc)
			}
			clear(line[pairs:])
		}
	}
}

// openPart is memory for the sums of a part of c that is bfloat16: what it holds already, where that is added to.
func (t *tiledTask[T]) openPart(p *packed[T], row, rows, col, cols int) part[T] {
	grow(&p.c, rows*cols)
	for r := 0; r < rows && t.add; r++ {
		t.vector.widen(floats(p.c[r*cols:][:cols]), t.half.c[(row+r)*t.ldc+col:][:cols])
	}
	return part[T]{p.c, cols, row, col, t.add}
}

// closePart rounds the sums.
func (t *tiledTask[T]) closePart(from part[T], rows, cols int) {
	for r := range rows {
		t.vector.narrow(t.half.c[(from.row+r)*t.ldc+from.col:][:cols], floats(from.c[r*cols:][:cols]))
	}
}

// floats is x as float32, which it must be.
func floats[T float](x []T) []float32 { return unsafe.Slice(first(x), len(x)) }

// wideTask rounds the sums of a whole product, or loads what they begin with.
type wideTask struct {
	rows *rowOps
	full []float32
	half []uint16
	load bool
}

func (t *wideTask) run(_, lo, hi int) {
	if t.load {
		t.rows.widen(t.full[lo:hi], t.half[lo:hi])
	} else {
		t.rows.narrow(t.half[lo:hi], t.full[lo:hi])
	}
}

// widened lets a product whose k is walked in several stretches add up in float32.
func (d *core[T]) widened(t *tiledTask[T]) {
	n := t.m * t.n
	grow(&d.wide, n)
	t.c = d.wide
	d.ops.wide = wideTask{d.rows, floats(t.c), t.half.c, true}
	if t.half.c = nil; t.add {
		d.team.split(n, 256, n, &d.ops.wide)
	}
}

// narrowed ends what widened began.
func (d *core[T]) narrowed(t *tiledTask[T]) {
	n := t.m * t.n
	d.ops.wide.load = false
	d.team.split(n, 256, n, &d.ops.wide)
}

// edge is the rows and columns of a tile that c has.
func edge(c *float32, ldc, rows, cols int) []float32 { return unsafe.Slice(c, (rows-1)*ldc+cols) }

// copyEdge copies them.
func copyEdge(dst []float32, ldd int, src []float32, lds, rows, cols int) {
	for r := range rows {
		copy(dst[r*ldd:][:cols], src[r*lds:][:cols])
	}
}
