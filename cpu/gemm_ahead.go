package cpu

// ahead is a block of an operand in memory that will be packed next. While the present one is multiplied, tiles ask for it line by
// line, so that packing finds it in a cache: rows are far apart, and no processor foresees them.
type ahead[T float] struct {
	x     []T // from the block's first element
	ld    int // elements from row to row
	rows  int
	pairs int // of cache lines in a row: memory gives two at little more than the price of one
	asked int // columns of pairs asked for, of up to one tile's rounds each
}

// of is what one tile asks for in its rounds: a column of pairs of lines, from a place step elements on each time.
func (a *ahead[T]) of(rounds int, none *T) (at *T, step int) {
	if a.pairs == 0 || rounds == 0 {
		return none, 0
	}
	row := a.asked / a.pairs * rounds
	if row >= a.rows {
		return none, 0
	}
	i := row*a.ld + a.asked%a.pairs*pairOfLines[T]()
	a.asked++
	if i >= len(a.x) {
		return none, 0
	}
	return &a.x[i], a.ld
}

// pairOfLines is the elements of two cache lines.
func pairOfLines[T float]() int {
	var zero T
	if _, double := any(zero).(float64); double {
		return 2 * line / 8
	}
	return 2 * line / 4
}

// expect says that the operand's own block [from, from+n) of rows of c (or of columns) by kc of k from pc is next.
func (t *tiledTask[T]) expect(p *packed[T], from, n, pc, kc int) {
	p.ahead = ahead[T]{}
	x, ld, turned, most := t.b, t.ldb, t.transB, t.n
	if t.byRows {
		x, ld, turned, most = t.a, t.lda, !t.transA, t.m
	}
	rowPairs := pairOfLines[T]()
	if h := t.half.of(t.byRows); h != nil {
		x, rowPairs = words[T](h), 2*rowPairs
		if ld%2 != 0 {
			return
		}
	}
	n = min(n, most-from)
	if t.whole == nil || from < 0 || n <= 0 || kc <= 0 {
		return
	}
	first, rows, cols := pc*ld+from, kc, n
	if turned {
		first, rows, cols = from*ld+pc, n, kc
	}
	pairs := (cols + rowPairs - 1) / rowPairs
	if rowPairs > pairOfLines[T]() { // two numbers in the place of one
		first, ld = first/2, ld/2
	}
	p.ahead = ahead[T]{x: x[min(first, len(x)):], ld: ld, rows: rows, pairs: pairs}
}
