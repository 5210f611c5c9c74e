package devicetest

import (
	"fmt"
	"math"

	"triax/tensor"
)

// dropped is the definition of the mask.
func dropped(seed uint64, i int, rate float64) bool {
	return math.Ldexp(float64(tensor.Bits(seed, uint64(i))), -64) < rate
}

func dropouts(b *bench) {
	for _, s := range [][2]int{{1, 1}, {3, 7}, {17, 65}, {130, 301}} {
		for _, rate := range []float64{0, 0.1, 0.5, 0.9} {
			b.dropout(s[0], s[1], rate)
		}
		b.free()
	}
	b.keepRate()
}

// dropout: the mask follows the rows' global numbers, however rows and columns are cut.
func (b *bench) dropout(rows, cols int, rate float64) {
	seed, stride := b.rng.Uint64(), cols+5
	index := make([]int32, rows)
	for t, at := range b.rng.Perm(rows) {
		index[t] = int32(at + 1000)
	}
	x, xv := b.random(1, rows, cols)
	want := make([]float64, len(xv))
	for i, v := range xv {
		if !dropped(seed, int(index[i/cols])*stride+i%cols+2, rate) {
			want[i] = v / (1 - rate)
		}
	}
	ids := b.ints(index)
	y := b.blank(rows, cols)
	b.dev.Dropout(y, x, ids, seed, stride, 2, rate)
	what := fmt.Sprintf("dropout %dx%d rate %v", rows, cols, rate)
	b.want(what, y, want)
	whole := b.read(y)
	for t := range rows { // a row by itself, and its right half by itself
		row := b.blank(1, cols)
		b.dev.Dropout(row, x.Rows(t, t+1), ids.Rows(t, t+1), seed, stride, 2, rate)
		b.equal(what+", row alone", b.read(row), whole[t*cols:(t+1)*cols])
		half := b.blank(1, cols-cols/2)
		b.dev.Dropout(half, x.Part(t*cols+cols/2, (t+1)*cols, 1, cols-cols/2), ids.Rows(t, t+1), seed, stride, 2+cols/2, rate)
		b.equal(what+", half a row", b.read(half), whole[t*cols+cols/2:(t+1)*cols])
		if t == 4 {
			break
		}
	}
	b.dev.Dropout(x, x, ids, seed, stride, 2, rate)
	b.equal(what+", in place", b.read(x), whole)
}

// keepRate: the share kept lies within 5 standard deviations, overall and in each column; two seeds agree
// no more often than chance has it.
func (b *bench) keepRate() {
	const rows, cols, rate = 400, 50, 0.3
	ones := make([]float64, rows*cols)
	for i := range ones {
		ones[i] = 1
	}
	index := make([]int32, rows)
	for t := range index {
		index[t] = int32(t)
	}
	x, ids := b.put(ones, rows, cols), b.ints(index)
	var masks [2][]float64
	for m := range masks {
		y := b.blank(rows, cols)
		b.dev.Dropout(y, x, ids, b.rng.Uint64(), cols, 0, rate)
		masks[m] = b.read(y)
	}
	var kept, both [cols + 1]float64
	for i, v := range masks[0] {
		if v != 0 {
			kept[i%cols]++
			kept[cols]++
			if masks[1][i] != 0 {
				both[cols]++
			}
		}
	}
	within := func(what string, got, n, p float64) {
		if sd := math.Sqrt(n * p * (1 - p)); math.Abs(got-n*p) > 6*sd {
			b.Errorf("%s: %v of %v, expected share %v", what, got, n, p)
		}
	}
	for c := range cols {
		within("kept in a column", kept[c], rows, 1-rate)
	}
	within("kept", kept[cols], rows*cols, 1-rate)
	within("kept under both seeds", both[cols], rows*cols, (1-rate)*(1-rate))
}
