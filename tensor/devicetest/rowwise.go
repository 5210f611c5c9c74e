package devicetest

// rowwises: scaling of rows and their products, also of none.
func rowwises(b *bench) {
	for _, shape := range [][2]int{{1, 1}, {3, 7}, {0, 5}, {130, 33}} {
		rows, cols := shape[0], shape[1]
		x, xv := b.random(1, rows, cols)
		s, sv := b.randomSum(1, rows)
		z, zv := b.random(1, rows, cols)
		want, dots := make([]float64, rows*cols), make([]float64, rows)
		for r := range rows {
			for c := range cols {
				i := r*cols + c
				want[i] = xv[i] * sv[r]
				dots[r] += xv[i] * zv[i]
			}
		}
		y, d := b.blank(rows, cols), b.blankSum(rows)
		b.dev.ScaleRows(y, x, s)
		b.want("scaled rows", y, want)
		b.dev.DotRows(d, x, z)
		b.close("products of rows", b.read(d), dots, b.tol, 1)
		b.dev.ScaleRows(x, x, s)
		b.equal("scaled in place", b.read(x), b.read(y))
		b.free()
	}
}
