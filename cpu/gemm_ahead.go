package cpu

// ahead is a block of an operand in memory that will be packed next. While the present one is multiplied, tiles ask for it line by
// line, so that packing finds it in a cache: rows are far apart, and no processor foresees them.
type ahead[T float] struct {
	x     []T // from the block's first element
	ld    int // elements from row to row
	rows  int
	lines int // cache lines of a row
	asked int // columns of lines asked for, of up to one tile's rounds each
}

// of is what one tile asks for in its rounds: a column of lines, from a place step elements on each time.
func (a *ahead[T]) of(rounds int, none *T) (at *T, step int) {
	if a.lines == 0 || rounds == 0 {
		return none, 0
	}
	row := a.asked / a.lines * rounds
	if row >= a.rows {
		return none, 0
	}
	i := row*a.ld + a.asked%a.lines*lineOf[T]()
	a.asked++
	if i >= len(a.x) {
		return none, 0
	}
	return &a.x[i], a.ld
}

// lineOf is the elements of a cache line.
func lineOf[T float]() int {
	var zero T
	if _, double := any(zero).(float64); double {
		return line / 8
	}
	return line / 4
}

// expect says that the operand's own block [from, from+n) of rows of c (or of columns) by kc of k from pc is next.
func (t *tiledTask[T]) expect(p *packed[T], from, n, pc, kc int) {
	p.ahead = ahead[T]{}
	x, ld, turned, most := t.b, t.ldb, t.transB, t.n
	if t.byRows {
		x, ld, turned, most = t.a, t.lda, !t.transA, t.m
	}
	n = min(n, most-from)
	if t.whole == nil || from < 0 || n <= 0 || kc <= 0 {
		return
	}
	first, rows, cols := pc*ld+from, kc, n
	if turned {
		first, rows, cols = from*ld+pc, n, kc
	}
	p.ahead = ahead[T]{x: x[first:], ld: ld, rows: rows, lines: (cols + lineOf[T]() - 1) / lineOf[T]()}
}
