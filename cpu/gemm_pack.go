package cpu

// packA lays out rows ic.. of op(a) as panels [kc rows].
func (t *tiledTask[T]) packA(p *packed[T], to []T, ic, mc, pc, kc int) {
	if t.half.a != nil {
		t.packHalves(p, to, t.half.a, ic, mc, pc, kc, t.lda, t.transA, true)
		return
	}
	if t.pairs != nil && t.pairs.byRows {
		t.roundByRows(p, to, ic, mc, pc, kc)
		return
	}
	const group = 8 // panels written at a time: they may all fall into one set of the first-level cache
	depth := t.depth(kc)
	for i := 0; i < mc && kc > 0; {
		n, panels := min(t.rows, mc-i), min(group, (mc-i)/t.rows)
		switch {
		case !t.transA:
			t.turned(p, to[i*depth:], t.rows, t.a[(ic+i)*t.lda+pc:], t.lda, n, kc)
		case panels > 0:
			n = panels * t.rows
			t.pieces(t.copyA, to[i*depth:], t.a[pc*t.lda+ic+i:], t.lda, kc, n, t.rows, t.rows, t.rows*depth)
		default:
			t.paddedRows(to[i*depth:], t.rows, t.a[pc*t.lda+ic+i:], t.lda, n, kc)
		}
		i += n
	}
}

// packB lays out columns jc.. of op(b) as panels [kc width].
func (t *tiledTask[T]) packB(p *packed[T], to []T, jc, nc, pc, kc int) {
	if t.half.b != nil {
		t.packHalves(p, to, t.half.b, jc, nc, pc, kc, t.ldb, !t.transB, false)
		return
	}
	at := 0
	for j := 0; j < nc && kc > 0; {
		tile := t.tileFor(nc - j)
		n := min(tile.width, nc-j)
		switch {
		case t.transB:
			t.turned(p, to[at:], tile.width, t.b[(jc+j)*t.ldb+pc:], t.ldb, n, kc)
		case n == tile.width:
			t.pieces(t.copyB, to[at:], t.b[pc*t.ldb+jc+j:], t.ldb, kc, n, t.lanes, n, t.lanes)
		default:
			t.paddedRows(to[at:], tile.width, t.b[pc*t.ldb+jc+j:], t.ldb, n, kc)
		}
		if pairs, depth := (kc+1)/2, t.depth(kc); t.pairs != nil && pairs < depth {
			clear(to[at+pairs*tile.width : at+depth*tile.width])
		}
		at += tile.width * t.depth(kc)
		j += n
	}
}

// pieces copies n of each of k rows by a copy, piece elements at a time. Where rows make pairs, the last of an odd
// number is alone.
func (t *tiledTask[T]) pieces(f copyOf[T], to, from []T, stride, k, n, piece, width, panel int) {
	rows := k
	if t.pairs != nil {
		rows = k / 2
	}
	if rows > 0 {
		f(&to[0], &from[0], stride, rows, n/piece, width, panel)
	}
	if t.pairs == nil || k%2 == 0 {
		return
	}
	for j, x := range from[(k-1)*stride:][:n] {
		to[rows*width+j/piece*panel+j%piece] = t.pairs.pair(x, 0)
	}
}

// paddedRows: dst[p*width+j] = src[p*stride+j] for j < n, and zero up to width.
func (t *tiledTask[T]) paddedRows(dst []T, width int, src []T, stride, n, k int) {
	depth := k
	if t.pairs != nil {
		depth = (k + 1) / 2
	}
	for p := range depth {
		row := dst[p*width:][:width]
		clear(row[n:])
		if t.pairs == nil {
			copy(row, src[p*stride:][:n])
			continue
		}
		for j := range n {
			var next T
			if 2*p+1 < k {
				next = src[(2*p+1)*stride+j]
			}
			row[j] = t.pairs.pair(src[2*p*stride+j], next)
		}
	}
}

// turned is transposed, of pairs where rows make pairs.
func (t *tiledTask[T]) turned(p *packed[T], dst []T, width int, src []T, stride, n, k int) {
	if t.pairs == nil {
		t.transposed(dst, width, src, stride, n, k)
		return
	}
	const strip = 8
	depth := (k + 1) / 2
	grow(&p.strip, strip*depth)
	for j := 0; j < n; j += strip {
		rows := min(strip, n-j)
		for r := range rows {
			t.pairs.narrow(&p.strip[r*depth], &src[(j+r)*stride], k)
		}
		t.transpose(dst[j:], width, p.strip, depth, rows, depth)
	}
	zeroColumns(dst, width, n, depth)
}

// transposed: dst[p*width+j] = src[j*stride+p] for j < n, and zero up to width.
func (t *tiledTask[T]) transposed(dst []T, width int, src []T, stride, n, k int) {
	t.transpose(dst, width, src, stride, n, k)
	zeroColumns(dst, width, n, k)
}

// zeroColumns clears columns n up to width of [k width].
func zeroColumns[T float](x []T, width, n, k int) {
	for p := 0; p < k && n < width; p++ {
		clear(x[p*width+n : (p+1)*width])
	}
}

// transpose is transposed without the zeros.
func (t *tiledTask[T]) transpose(dst []T, width int, src []T, stride, n, k int) {
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
}
