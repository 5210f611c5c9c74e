package devicetest

import "fmt"

// embeds: ids held elsewhere (below, above, negative) give zero rows and take no gradient; repeated ids add up.
func embeds(b *bench) {
	for _, s := range [][4]int{{1, 1, 1, 0}, {3, 7, 5, 0}, {17, 65, 30, 4}, {9, 130, 257, 100}, {65, 3, 1000, 7}} {
		rows, cols, tokens, lo := s[0], s[1], s[2], s[3]
		ids := make([]int32, tokens)
		for t := range ids {
			ids[t] = int32(lo + b.rng.IntN(rows+4) - 2)
		}
		table, tv := b.random(1, rows, cols)
		dy, dyv := b.random(1, tokens, cols)
		dt, dtv := b.randomSum(1, rows, cols)
		plain, plainV := b.random(1, rows, cols) // a table of the device's own type
		want := make([]float64, tokens*cols)
		for t, id := range ids {
			r := int(id) - lo
			if r < 0 || r >= rows {
				continue
			}
			copy(want[t*cols:(t+1)*cols], tv[r*cols:])
			for j := range cols {
				dtv[r*cols+j] += dyv[t*cols+j]
				plainV[r*cols+j] += dyv[t*cols+j]
			}
		}
		y, at := b.blank(tokens, cols), b.ints(ids)
		b.dev.Embed(y, table, at, lo)
		b.equal(fmt.Sprintf("embed %v", s), b.read(y), want)
		b.dev.EmbedGrad(dt, dy, at, lo)
		b.want(fmt.Sprintf("embed gradient %v", s), dt, dtv)
		b.dev.EmbedGrad(plain, dy, at, lo)
		b.want(fmt.Sprintf("embed gradient %v into %v", s, plain.DType), plain, plainV)
		b.free()
	}
}
